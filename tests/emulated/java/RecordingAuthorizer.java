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
 * Kafka's own authorizer, whose decisions it takes and writes to a file. As Kafka's log has it, a question is left out whose answer only
 * decides what a list shows.
 */
public final class RecordingAuthorizer extends StandardAuthorizer {
    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < actions.size(); i++) {
            Action action = actions.get(i);
            if (results.get(i) == AuthorizationResult.ALLOWED || action.logIfDenied()) {
                lines.append(String.join(" ", context.principal().getName(), results.get(i).name(), action.operation().name(),
                    action.resourcePattern().resourceType().name(), action.resourcePattern().name())).append('\n');
            }
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
