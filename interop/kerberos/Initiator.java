import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.security.PrivilegedExceptionAction;
import java.util.Base64;
import java.util.Map;
import javax.security.auth.Subject;
import javax.security.auth.login.LoginContext;
import javax.security.sasl.Sasl;
import javax.security.sasl.SaslClient;

/**
 * The client's side of GSSAPI in Java. It writes and reads tokens as lines of base64. The arguments are the
 * section of the JAAS file, the service, its host, the id to act as ("-" for none), and whether the
 * server must prove who it is.
 */
public class Initiator {
    public static void main(String[] args) throws Exception {
        LoginContext login = new LoginContext(args[0]);
        login.login();
        Subject.doAs(login.getSubject(), (PrivilegedExceptionAction<Void>) () -> {
            exchange(args);
            return null;
        });
    }

    private static void exchange(String[] args) throws Exception {
        SaslClient client = Sasl.createSaslClient(new String[] {"GSSAPI"}, args[3].equals("-") ? null : args[3], args[1], args[2],
            Map.of(Sasl.SERVER_AUTH, args[4]), callbacks -> { });
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        byte[] token = client.evaluateChallenge(new byte[0]);
        while (true) {
            System.out.println(Base64.getEncoder().encodeToString(token));
            if (client.isComplete()) {
                return;
            }
            String line = in.readLine();
            if (line == null) {
                return;
            }
            token = client.evaluateChallenge(Base64.getDecoder().decode(line));
        }
    }
}
