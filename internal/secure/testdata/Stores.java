import java.io.File;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import javax.net.ssl.X509KeyManager;
import javax.net.ssl.X509TrustManager;
import org.apache.zookeeper.common.X509Util;

/** Prints what ZooKeeper finds in each store of a folder. */
public class Stores {
    public static void main(String[] args) {
        String[] names = new File(args[0]).list();
        Arrays.sort(names);
        for (String name : names) {
            if (!name.matches(".*\\.(pem|p12|jks)")) {
                continue;
            }
            String file = args[0] + "/" + name;
            String password = name.startsWith("accents") ? (name.endsWith("jks") ? "p\u00e4ssw\u00f6rd\u20ac" : "p\u00e4ssw\u00f6rd") : "changeit";
            if (name.endsWith(".pem") && !name.startsWith("encrypted") || name.matches("(no-password|plain).p12")) {
                password = "";
            }
            System.out.println(name + " key: " + keys(file, password));
            System.out.println(name + " trust: " + trusted(file, password));
        }
    }

    static String keys(String file, String password) {
        try {
            X509KeyManager m = X509Util.createKeyManager(file, password, null);
            TreeSet<String> found = new TreeSet<>();
            for (String type : new String[] {"RSA", "EC", "DSA", "EdDSA"}) {
                String[] aliases = m.getServerAliases(type, null);
                for (String alias : aliases == null ? new String[0] : aliases) {
                    List<String> chain = new ArrayList<>();
                    for (X509Certificate c : m.getCertificateChain(alias)) {
                        chain.add(c.getSubjectX500Principal().getName());
                    }
                    found.add(String.join(" < ", chain));
                }
            }
            return found.isEmpty() ? "none" : String.join("; ", found);
        } catch (Throwable e) {
            return "refused";
        }
    }

    static String trusted(String file, String password) {
        try {
            X509TrustManager m = X509Util.createTrustManager(file, password, null, false, false, false, false);
            TreeSet<String> found = new TreeSet<>();
            for (X509Certificate c : m.getAcceptedIssuers()) {
                found.add(c.getSubjectX500Principal().getName());
            }
            return found.isEmpty() ? "none" : String.join("; ", found);
        } catch (Throwable e) {
            return "refused";
        }
    }
}
