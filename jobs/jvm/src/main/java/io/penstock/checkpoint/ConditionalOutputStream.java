package io.penstock.checkpoint;

import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.AWSServiceIOException;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

import static org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE;
import static org.apache.hadoop.fs.s3a.Constants.FS_S3A_CREATE_HEADER;
import static org.apache.hadoop.fs.s3a.Constants.FS_S3A_CREATE_PERFORMANCE;

/**
 * A new file, sent to S3 by {@link #close} in one conditional {@code PUT}. The content is held in memory until then: the entries of
 * Spark's logs have some kilobytes. {@link #cancel} forgets it, and nothing was sent.
 */
final class ConditionalOutputStream extends CancellableFSDataOutputStream {
    private static final Logger LOG = LoggerFactory.getLogger(ConditionalOutputStream.class);
    /** Name of the object's user-defined metadata with the id of the write, {@code x-amz-meta-penstock-write}. */
    private static final String WRITE_ID = "penstock-write";
    /** Three to six seconds in all: S3 answers 409 only while another request on the same key is being processed. */
    private static final int ATTEMPTS = 6;
    private static final long FIRST_WAIT_MS = 100;
    private static final int PRECONDITION_FAILED = 412;
    private static final int CONFLICT = 409;

    private final FileSystem files;
    private final Path path;
    private final ByteArrayOutputStream content;
    private final String writeId = UUID.randomUUID().toString();
    private boolean ended;

    ConditionalOutputStream(FileSystem files, Path path) throws IOException {
        super(new ByteArrayOutputStream());
        this.files = files;
        this.path = path;
        this.content = (ByteArrayOutputStream) getWrappedStream();
    }

    /** Forgets what was written; after {@link #close}, does nothing. */
    @Override
    public synchronized void cancel() {
        ended = true;
    }

    /**
     * Creates the file.
     *
     * @throws FileAlreadyExistsException another writer created it
     * @throws IOException S3 refused the request, or gave no answer within s3a's retries; in the latter case the file may exist
     */
    @Override
    public synchronized void close() throws IOException {
        if (ended) {
            return;
        }
        ended = true;
        for (int attempt = 1; !created(attempt); attempt++) {
            pause(attempt);
        }
    }

    /** Whether the file is created; false: to be tried again. */
    private boolean created(int attempt) throws IOException {
        try {
            put();
            return true;
        } catch (IOException error) {
            return switch (status(error)) {
                case PRECONDITION_FAILED -> createdByThisWrite(attempt, error);
                case CONFLICT -> refusedAfterTheLast(attempt, error);
                default -> throw failed("S3 did not confirm the request", error);
            };
        }
    }

    /** Of a file that is not probed for: S3 decides whether it exists, and has no directories. */
    static FSDataOutputStreamBuilder<?, ?> unprobed(FileSystem files, Path path) throws IOException {
        FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
        builder.create();
        builder.overwrite(true);
        builder.recursive();
        builder.must(FS_S3A_CREATE_PERFORMANCE, true);
        return builder;
    }

    private void put() throws IOException {
        FSDataOutputStreamBuilder<?, ?> builder = unprobed(files, path);
        builder.must(FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true);
        builder.must(FS_S3A_CREATE_HEADER + "." + WRITE_ID, writeId);
        FSDataOutputStream out = builder.build();
        try {
            content.writeTo(out);
        } catch (IOException error) {
            // Closing the stream would send what it has.
            out.abort();
            throw error;
        }
        out.close();
    }

    /** Decides on a 412. The SDK and s3a repeat a request whose answer was lost; the second then finds the file of the first. */
    private boolean createdByThisWrite(int attempt, IOException refused) throws IOException {
        String writer;
        try {
            byte[] value = files.getXAttr(path, "header." + WRITE_ID);
            writer = value == null ? "" : new String(value, StandardCharsets.UTF_8);
        } catch (FileNotFoundException deleted) {
            return refusedAfterTheLast(attempt, refused);
        } catch (IOException error) {
            throw failed("it exists, and S3 did not answer by whom it was written", error);
        }
        if (writer.equals(writeId)) {
            LOG.info("{} was created by a request whose answer was lost", path);
            return true;
        }
        FileAlreadyExistsException exists = new FileAlreadyExistsException(path + " was written by another driver");
        exists.initCause(refused);
        throw exists;
    }

    private boolean refusedAfterTheLast(int attempt, IOException error) throws IOException {
        if (attempt == ATTEMPTS) {
            throw failed("S3 reported a conflicting request (ConditionalRequestConflict) " + ATTEMPTS + " times", error);
        }
        return false;
    }

    private IOException failed(String why, IOException error) {
        if (error instanceof InterruptedIOException && !(error instanceof SocketTimeoutException)) {
            // Spark recognizes a query that is being stopped by it. s3a reports a timeout by a subclass.
            return error;
        }
        return new IOException("conditional write of " + path + " failed: " + why + ": " + error.getMessage(), error);
    }

    private static int status(IOException error) {
        return error instanceof RemoteFileChangedException ? PRECONDITION_FAILED
                : error instanceof AWSServiceIOException refused ? refused.statusCode() : 0;
    }

    /** Longer with each attempt, and random, so that two writers do not meet again. */
    private static void pause(int attempt) throws InterruptedIOException {
        try {
            Thread.sleep((long) ((FIRST_WAIT_MS << attempt) * (0.5 + Math.random() / 2)));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw (InterruptedIOException) new InterruptedIOException("interrupted between two attempts").initCause(error);
        }
    }
}
