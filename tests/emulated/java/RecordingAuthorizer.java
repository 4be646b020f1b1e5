import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Kafka's own authorizer, whose decisions it takes and writes to a file. HIDDEN is what is denied without a line in Kafka's log, such as a
 * topic that a list leaves out.
 */
public final class RecordingAuthorizer extends StandardAuthorizer {
    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < actions.size(); i++) {
            Action action = actions.get(i);
            boolean hidden = results.get(i) == AuthorizationResult.DENIED && !action.logIfDenied();
            lines.append(String.join(" ", context.principal().getName(), hidden ? "HIDDEN" : results.get(i).name(),
                action.operation().name(), action.resourcePattern().resourceType().name(), action.resourcePattern().name())).append('\n');
        }
        write(lines.toString());
        return results;
    }

    private static void write(String lines) {
        try {
            Files.writeString(Path.of(System.getProperty("penstock.decisions")), lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
