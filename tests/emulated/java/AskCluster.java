import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;

/** A Java client with the settings that Spark's source gets, as name=value on the command line: prints how many brokers answer. */
public final class AskCluster {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        settings.put("default.api.timeout.ms", "20000");
        settings.put("request.timeout.ms", "10000");
        try (Admin admin = Admin.create(settings)) {
            System.out.println("brokers " + admin.describeCluster().nodes().get().size());
        }
    }
}
