package io.penstock.checkpoint;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;
import org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;

import java.io.IOException;
import java.io.UncheckedIOException;

import static org.apache.hadoop.fs.Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE;

/**
 * Spark's checkpoint files on s3a, where a file that must not exist is created by S3 itself: {@code PUT} with {@code If-None-Match: *}. Of
 * two queries that write one checkpoint, exactly one creates {@code offsets/N} and {@code commits/N}. The parent class checks that the file
 * does not exist and then writes it without a condition, so that two writers that check at the same time both write.
 *
 * <p>Spark creates the entries of its logs with {@code overwriteIfPossible = false}: offsets, commits, {@code metadata}, and the metadata
 * and schemas of state. Neither kind of file is probed for before it is written, which the parent does with up to six requests per file.
 */
public final class ConditionalCheckpointFileManager extends AbortableStreamBasedCheckpointFileManager {
    private final FileSystem files;

    /**
     * Spark calls this one by reflection.
     *
     * @param path directory of the files
     * @param conf Hadoop's settings
     * @throws UnsupportedFileSystemException the file system cannot abort a write or create a file conditionally
     */
    public ConditionalCheckpointFileManager(Path path, Configuration conf) throws IOException {
        super(path, conf);
        // Cached by Hadoop, one for all managers of this JVM.
        files = path.getFileSystem(conf);
        if (!files.hasPathCapability(path, FS_OPTION_CREATE_CONDITIONAL_OVERWRITE)) {
            throw new UnsupportedFileSystemException(path + " cannot create files conditionally: a checkpoint needs an s3a path, and "
                    + "fs.s3a.create.conditional.enabled must not be false");
        }
    }

    /**
     * Opens a file that exists only once its stream is closed, and not at all if the stream is cancelled.
     *
     * @param path the file
     * @param overwriteIfPossible false: it must not exist when it is closed
     */
    @Override
    public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
        try {
            // The parent's stream aborts it if it is cancelled. State may be large, so it is not held in memory.
            return overwriteIfPossible
                    ? new AbortableStreamBasedFSDataOutputStream(ConditionalOutputStream.unprobed(files, path).build(), fc(), path, true)
                    : new ConditionalOutputStream(files, path);
        } catch (IOException error) {
            // The interface, which is Scala's, declares none.
            throw new UncheckedIOException(error);
        }
    }
}
