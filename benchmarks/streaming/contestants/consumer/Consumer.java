import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** Reads a topic to its end and counts the bytes: what no job that reads it can beat. Arguments: brokers, topic, partitions, records. */
public final class Consumer {
  public static void main(String[] args) {
    var properties = new Properties();
    properties.putAll(Map.of("bootstrap.servers", args[0], "auto.offset.reset", "earliest", "enable.auto.commit", "false",
        "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer", "max.poll.records", "10000"));
    long wanted = Long.parseLong(args[3]), records = 0, bytes = 0;
    try (var consumer = new KafkaConsumer<byte[], byte[]>(properties)) {
      consumer.assign(IntStream.range(0, Integer.parseInt(args[2])).mapToObj(n -> new TopicPartition(args[1], n)).toList());
      while (records < wanted) {
        for (var record : consumer.poll(Duration.ofMillis(100))) {
          records++;
          bytes += record.value().length;
        }
      }
    }
    System.out.println(records + " " + bytes);
  }
}
