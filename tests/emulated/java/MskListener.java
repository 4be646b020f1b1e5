import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.Provider;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import javax.security.sasl.SaslServerFactory;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SecurityProviderCreator;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * MSK's side of a sign-in with IAM, as far as a broker that knows no AWS can play it: both mechanisms are taken as MSK takes them, what the
 * client sends is written to a file for the test to check its signature, and only what asks to connect is let in.
 */
public final class MskListener implements SecurityProviderCreator {
    static final String ACTION = "kafka-cluster:Connect";

    static void record(String mechanism, String sent) {
        try {
            String line = mechanism + " " + Base64.getEncoder().encodeToString(sent.getBytes(StandardCharsets.UTF_8)) + "\n";
            Files.writeString(Path.of(System.getProperty("penstock.sent")), line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    @Override
    public Provider getProvider() {
        return new Iam();
    }

    /** Makes AWS_MSK_IAM known to the broker. */
    public static final class Iam extends Provider {
        public Iam() {
            super("Penstock test", "1", "AWS_MSK_IAM for tests");
            put("SaslServerFactory.AWS_MSK_IAM", Factory.class.getName());
        }
    }

    public static final class Factory implements SaslServerFactory {
        @Override
        public SaslServer createSaslServer(String mechanism, String protocol, String server, Map<String, ?> props, CallbackHandler handler) {
            return new Server();
        }

        @Override
        public String[] getMechanismNames(Map<String, ?> props) {
            return new String[] {"AWS_MSK_IAM"};
        }
    }

    private static final class Server implements SaslServer {
        private String identity;

        @Override
        public String getMechanismName() {
            return "AWS_MSK_IAM";
        }

        @Override
        public byte[] evaluateResponse(byte[] response) throws SaslException {
            String sent = new String(response, StandardCharsets.UTF_8);
            record("AWS_MSK_IAM", sent);
            Matcher action = Pattern.compile("\"action\"\\s*:\\s*\"" + ACTION + "\"").matcher(sent);
            Matcher credential = Pattern.compile("\"x-amz-credential\"\\s*:\\s*\"([^/\"]+)").matcher(sent);
            if (!action.find() || !credential.find()) {
                throw new SaslException("no question to connect");
            }
            identity = credential.group(1);
            return "{\"version\":\"2020_10_22\",\"request-id\":\"1\"}".getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public boolean isComplete() {
            return identity != null;
        }

        @Override
        public String getAuthorizationID() {
            return identity;
        }

        @Override
        public byte[] unwrap(byte[] incoming, int offset, int length) {
            return java.util.Arrays.copyOfRange(incoming, offset, offset + length);
        }

        @Override
        public byte[] wrap(byte[] outgoing, int offset, int length) {
            return java.util.Arrays.copyOfRange(outgoing, offset, offset + length);
        }

        @Override
        public Object getNegotiatedProperty(String name) {
            return null;
        }

        @Override
        public void dispose() {
            // Nothing is held.
        }
    }

    /** Takes a token of MSK's signers: a presigned address, base64 without padding. */
    public static final class Tokens implements AuthenticateCallbackHandler {
        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            // It needs no settings.
        }

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (!(callback instanceof OAuthBearerValidatorCallback asked)) {
                    continue;
                }
                String url = new String(Base64.getUrlDecoder().decode(asked.tokenValue()), StandardCharsets.UTF_8);
                record("OAUTHBEARER", url);
                Matcher credential = Pattern.compile("X-Amz-Credential=([^%&/]+)").matcher(url);
                if (!url.contains("Action=" + ACTION.replace(":", "%3A")) || !credential.find()) {
                    asked.error("invalid_token", null, null);
                    continue;
                }
                asked.token(new Token(asked.tokenValue(), credential.group(1)));
            }
        }

        @Override
        public void close() {
            // Nothing is held.
        }
    }

    private record Token(String value, String principalName) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return System.currentTimeMillis() + 900_000;
        }

        @Override
        public Long startTimeMs() {
            return null;
        }
    }
}
