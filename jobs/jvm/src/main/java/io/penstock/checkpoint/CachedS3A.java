package io.penstock.checkpoint;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

/**
 * s3a for Hadoop's {@code FileContext}, by the {@code FileSystem} that Hadoop has cached for the bucket. Spark's checkpoint file managers
 * have a context each, one for every log and state store, and Hadoop's {@code S3A} a client of its own, with its connections, for each.
 */
public final class CachedS3A extends DelegateToFileSystem {
    public CachedS3A(URI uri, Configuration conf) throws IOException, URISyntaxException {
        super(uri, new FilterFileSystem(FileSystem.get(uri, conf)), conf, uri.getScheme(), false);
    }
}
