// Record asks the JDK and ZooKeeper what they make of tokens, names and rules, and prints the
// answers as JSON. It remakes vectors.json, on Debian 12 with libzookeeper-java, by:
//
//   J=/usr/share/java; java -Dfile.encoding=UTF-8 -Djava.security.krb5.realm=EXAMPLE.COM -Djava.security.krb5.kdc=localhost \
//     -cp $J/zookeeper.jar:$J/slf4j-api.jar:$J/slf4j-nop.jar Record.java > vectors.json
//
// Nonces are random, so each run gives other values of the same form.

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.*;
import javax.security.auth.callback.*;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import javax.security.sasl.*;
import org.apache.zookeeper.server.auth.KerberosName;
import org.apache.zookeeper.server.auth.SaslServerCallbackHandler;

public class Record {
    static final Map<String, String> USERS = new LinkedHashMap<>();

    static {
        USERS.put("bob", "bobsecret");
        USERS.put("super", "adminsecret");
        USERS.put("émile", "pässwörd");
        USERS.put("中文", "密码");
        USERS.put("a\"b\\c", "q\"uote");
        USERS.put("émile2", "密码");
        USERS.put("empty", "");
        USERS.put("eve@EXAMPLE.COM", "x");
        USERS.put("svc/host@EXAMPLE.COM", "x");
    }

    // Section is a JAAS configuration with one section and these options.
    static Configuration section(String name, Map<String, String> users) {
        Map<String, String> options = new HashMap<>();
        users.forEach((user, password) -> options.put("user_" + user, password));
        AppConfigurationEntry e = new AppConfigurationEntry("org.apache.zookeeper.server.auth.DigestLoginModule",
            AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, options);
        return new Configuration() {
            public AppConfigurationEntry[] getAppConfigurationEntry(String n) {
                return n.equals(name) ? new AppConfigurationEntry[] {e} : null;
            }
        };
    }

    static CallbackHandler handler() throws Exception {
        return new SaslServerCallbackHandler(section("Server", USERS));
    }

    // One answer to a challenge: how it differs from the usual one of bob.
    static class Case {
        String name, user = "bob", password = "bobsecret", realm = "zk-sasl-md5", uri = "zookeeper/zk-sasl-md5";
        String cnonce = "0123456789abcdef", qop = "auth", authzid, nc = "00000001", template;
        Charset charset = StandardCharsets.UTF_8;

        Case(String name, String template) {
            this.name = name;
            this.template = template;
        }
    }

    static final String USUAL = "charset=utf-8,username=\"{user}\",realm=\"{realm}\",nonce=\"{nonce}\",nc=00000001,"
        + "cnonce=\"{cnonce}\",digest-uri=\"{uri}\",maxbuf=65536,response={response},qop=auth";

    static Case with(String name, String from, String to) {
        if (!USUAL.contains(from)) {
            throw new IllegalArgumentException(from);
        }
        return new Case(name, USUAL.replace(from, to));
    }

    static List<Case> cases() {
        List<Case> out = new ArrayList<>();
        out.add(new Case("usual", USUAL));
        Case c = new Case("wrong password", USUAL);
        c.password = "guessed";
        out.add(c);
        c = new Case("unknown user", USUAL);
        c.user = "mallory";
        out.add(c);
        for (String user : List.of("super", "émile", "中文", "émile2", "empty", "eve@EXAMPLE.COM", "svc/host@EXAMPLE.COM")) {
            c = new Case("user " + user, USUAL);
            c.user = user;
            c.password = USERS.get(user);
            out.add(c);
        }
        c = new Case("escapes in the user name", USUAL.replace("{user}", "a\\\"b\\\\c"));
        c.user = "a\"b\\c";
        c.password = "q\"uote";
        out.add(c);
        c = new Case("needless escapes", USUAL.replace("\"{user}\"", "\"\\b\\o\\b\""));
        out.add(c);
        c = new Case("latin-1 bytes without charset", USUAL.replace("charset=utf-8,", ""));
        c.user = "émile";
        c.password = "pässwörd";
        c.charset = StandardCharsets.ISO_8859_1;
        out.add(c);
        out.add(with("without charset", "charset=utf-8,", ""));
        out.add(with("another charset", "charset=utf-8", "charset=iso-8859-1"));
        out.add(with("charset in capitals", "charset=utf-8", "charset=UTF-8"));
        out.add(with("quoted charset", "charset=utf-8", "charset=\"utf-8\""));
        out.add(with("key in capitals", "username=", "UserName="));
        out.add(with("no username", "username=\"{user}\",", ""));
        out.add(with("no realm", "realm=\"{realm}\",", ""));
        out.add(with("no nonce", "nonce=\"{nonce}\",nc", "nc"));
        out.add(with("no cnonce", "cnonce=\"{cnonce}\",", ""));
        out.add(with("no digest-uri", "digest-uri=\"{uri}\",", ""));
        out.add(with("no response", "response={response},", ""));
        out.add(with("no nc", "nc=00000001,", ""));
        out.add(with("no qop", ",qop=auth", ""));
        out.add(with("no maxbuf", "maxbuf=65536,", ""));
        out.add(with("nc 2", "nc=00000001", "nc=00000002"));
        out.add(with("nc 1", "nc=00000001", "nc=1"));
        out.add(with("nc not a number", "nc=00000001", "nc=x"));
        out.add(with("quoted nc", "nc=00000001", "nc=\"00000001\""));
        out.add(with("maxbuf 16", "maxbuf=65536", "maxbuf=16"));
        out.add(with("maxbuf too large", "maxbuf=65536", "maxbuf=99999999999"));
        out.add(with("maxbuf not a number", "maxbuf=65536", "maxbuf=much"));
        for (String qop : List.of("auth-int", "auth-conf", "none")) {
            c = new Case("qop " + qop, USUAL.replace("qop=auth", "qop=" + qop));
            c.qop = qop;
            out.add(c);
        }
        out.add(with("quoted qop", "qop=auth", "qop=\"auth\""));
        out.add(with("wrong nonce", "nonce=\"{nonce}\"", "nonce=\"AAAA{nonce}\""));
        c = new Case("another realm", USUAL);
        c.realm = "zk-quorum-sasl-md5";
        out.add(c);
        c = new Case("another service", USUAL);
        c.uri = "zookeeper-quorum/zk-sasl-md5";
        out.add(c);
        c = new Case("service in capitals", USUAL);
        c.uri = "ZooKeeper/ZK-sasl-md5";
        out.add(c);
        c = new Case("service name after the host", USUAL);
        c.uri = "zookeeper/zk-sasl-md5/x";
        out.add(c);
        for (String authzid : List.of("bob", "super", "")) {
            c = new Case("authzid '" + authzid + "'", USUAL + ",authzid=\"{authzid}\"");
            c.authzid = authzid;
            out.add(c);
        }
        c = new Case("authzid that is not hashed", USUAL + ",authzid=\"bob\"");
        out.add(c);
        out.add(with("response in capitals", "{response}", "{RESPONSE}"));
        out.add(with("quoted response", "{response}", "\"{response}\""));
        out.add(with("empty response", "{response}", "\"\""));
        out.add(with("blanks", ",", " , \t"));
        out.add(with("blanks in place of commas", ",", " "));
        out.add(with("blanks around =", "nc=00000001", "nc = 00000001"));
        out.add(with("empty elements", ",", ",,,"));
        out.add(new Case("trailing comma", USUAL + ","));
        out.add(new Case("unknown directive", USUAL + ",color=\"blue, or \\\"green\\\"\""));
        out.add(new Case("unknown directive twice", USUAL + ",color=1,color=2"));
        out.add(new Case("two usernames", USUAL + ",username=\"super\""));
        out.add(new Case("two realms", USUAL + ",realm=\"zk-sasl-md5\""));
        out.add(new Case("no value", USUAL + ",color="));
        out.add(new Case("no key", USUAL + ",=x"));
        out.add(new Case("a word", USUAL + ",color,x=y"));
        out.add(new Case("text after a quoted value", USUAL + ",color=\"x\"y"));
        out.add(new Case("quote not closed", USUAL + ",color=\"x"));
        out.add(new Case("backslash at the end", USUAL + ",color=\"x\\"));
        out.add(new Case("too long", USUAL + ",color=" + "x".repeat(4096)));
        out.add(new Case("empty", ""));
        return out;
    }

    static byte[] concat(byte[] a, byte[] b) {
        byte[] out = Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, out, a.length, b.length);
        return out;
    }

    static byte[] md5(byte[] b) throws Exception {
        return MessageDigest.getInstance("MD5").digest(b);
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b) {
            s.append(String.format("%02x", x));
        }
        return s.toString();
    }

    static byte[] hashed(String s) {
        boolean narrow = s.chars().allMatch(x -> x <= 0xff);
        return s.getBytes(narrow ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8);
    }

    static byte[] utf8(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    // The response by RFC 2831, for a client that is not the JDK's.
    static String response(Case c, String nonce) throws Exception {
        byte[] a1 = concat(concat(concat(hashed(c.user), utf8(":")), concat(hashed(c.realm), utf8(":"))), hashed(c.password));
        byte[] session = concat(md5(a1), utf8(":" + nonce + ":" + c.cnonce + (c.authzid == null ? "" : ":" + c.authzid)));
        String a2 = "AUTHENTICATE:" + c.uri + (c.qop.equals("auth") || c.qop.equals("none") ? "" : ":" + "0".repeat(32));
        return hex(md5(utf8(hex(md5(session)) + ":" + nonce + ":" + c.nc + ":" + c.cnonce + ":" + c.qop + ":" + hex(md5(utf8(a2))))));
    }

    static String between(String s, String from, String to) {
        int i = s.indexOf(from) + from.length();
        return s.substring(i, s.indexOf(to, i));
    }

    static Map<String, Object> server(Case c) throws Exception {
        SaslServer s = Sasl.createSaslServer("DIGEST-MD5", "zookeeper", "zk-sasl-md5", null, handler());
        String challenge = new String(s.evaluateResponse(new byte[0]), StandardCharsets.UTF_8);
        String nonce = between(challenge, "nonce=\"", "\"");
        String response = response(c, nonce);
        byte[] token = c.template.replace("{user}", c.user).replace("{realm}", c.realm).replace("{nonce}", nonce)
            .replace("{cnonce}", c.cnonce).replace("{uri}", c.uri).replace("{authzid}", String.valueOf(c.authzid))
            .replace("{response}", response).replace("{RESPONSE}", response.toUpperCase()).getBytes(c.charset);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("name", c.name);
        out.put("challenge", challenge);
        out.put("token", Base64.getEncoder().encodeToString(token));
        try {
            out.put("answer", new String(s.evaluateResponse(token), StandardCharsets.UTF_8));
            out.put("id", s.getAuthorizationID());
        } catch (SaslException e) {
            out.put("error", e.getMessage());
        } catch (RuntimeException e) {
            out.put("error", e.toString());
        }
        return out;
    }

    static Map<String, Object> client(String protocol, String server, String user, String password, String authzid, String challenge)
        throws Exception {
        CallbackHandler answers = callbacks -> {
            for (Callback c : callbacks) {
                if (c instanceof NameCallback) {
                    ((NameCallback) c).setName(user);
                } else if (c instanceof PasswordCallback) {
                    ((PasswordCallback) c).setPassword(password.toCharArray());
                } else if (c instanceof RealmCallback) {
                    ((RealmCallback) c).setText(((RealmCallback) c).getDefaultText());
                }
            }
        };
        SaslClient s = Sasl.createSaslClient(new String[] {"DIGEST-MD5"}, authzid, protocol, server, null, answers);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("protocol", protocol);
        out.put("server", server);
        out.put("user", user);
        out.put("password", password);
        out.put("authzid", authzid == null ? "" : authzid);
        out.put("challenge", challenge);
        try {
            out.put("token", Base64.getEncoder().encodeToString(s.evaluateChallenge(utf8(challenge))));
        } catch (SaslException e) {
            out.put("error", e.getMessage());
        }
        return out;
    }

    static List<Object> clients() throws Exception {
        String tail = "nonce=\"zK6o/7qVnZ+HfCLurNdOZ4CUi4nIt2c17/QoL/f5\",charset=utf-8,algorithm=md5-sess";
        String usual = "realm=\"zk-sasl-md5\"," + tail;
        List<Object> out = new ArrayList<>();
        USERS.forEach((user, password) -> {
            try {
                out.add(client("zookeeper", "zk-sasl-md5", user, password, null, usual));
                out.add(client("zookeeper", "zk-sasl-md5", user, password, user, usual));
                out.add(client("zookeeper-quorum", "zk-quorum-sasl-md5", user, password, user, usual.replace("zk-sasl", "zk-quorum-sasl")));
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        });
        for (String challenge : List.of(tail, usual.replace("charset=utf-8,", ""), usual.replace("md5-sess", "md5"), usual.replace("nonce=", "once="),
            usual.replace("utf-8", "latin-1"), usual + ",qop=\"auth\"", usual + ",qop=\"auth-int,auth\"", usual + ",qop=\"auth-int\"",
            usual + ",maxbuf=4096", usual + ",stale=true", usual + ",algorithm=md5-sess", "", "realm=\"a\\\"b\\\\c\"," + tail)) {
            out.add(client("zookeeper", "zk-sasl-md5", "bob", "bobsecret", null, challenge));
        }
        return out;
    }

    static Map<String, Object> name(String rules, String principal, boolean removeHost, boolean removeRealm) throws Exception {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("rules", rules);
        out.put("principal", principal);
        out.put("removeHost", removeHost);
        out.put("removeRealm", removeRealm);
        System.setProperty("zookeeper.security.auth_to_local", rules);
        System.setProperty("zookeeper.kerberos.removeHostFromPrincipal", String.valueOf(removeHost));
        System.setProperty("zookeeper.kerberos.removeRealmFromPrincipal", String.valueOf(removeRealm));
        try {
            KerberosName.setConfiguration();
            AuthorizeCallback ac = new AuthorizeCallback(principal, principal);
            handler().handle(new Callback[] {ac});
            out.put("id", ac.getAuthorizedID());
        } catch (RuntimeException e) {
            out.put("error", e.toString());
        }
        return out;
    }

    static List<Object> names() throws Exception {
        List<Object> out = new ArrayList<>();
        List<String> principals = List.of("bob", "bob@EXAMPLE.COM", "bob@OTHER.ORG", "svc/host.example.com@EXAMPLE.COM", "svc/host.example.com@OTHER.ORG",
            "a/b", "a/b/c@EXAMPLE.COM", "a@b@EXAMPLE.COM", "bob/admin@EXAMPLE.COM", "BOB@EXAMPLE.COM");
        List<String> rules = List.of("DEFAULT", "RULE:[1:$1]", "RULE:[1:$1@$0](.*@OTHER\\.ORG)s/@.*//\nDEFAULT", "RULE:[2:$1;$2](^.*;admin$)s/;admin$// DEFAULT",
            "RULE:[2:$2-$1]", "RULE:[1:$1](b.*)s/b/x/g", "RULE:[1:$1](b.*)s/b/x/", "RULE:[1:$1@$0]", "RULE:[1:$1@$0](.*@EXAMPLE.COM)s/(b)(o).*/$2$1-/",
            "RULE:[1:$1](BOB)s/O/\\$/RULE:[2:x$0]DEFAULT", "RULE:[1:$1]s/x*/-/g", "RULE:[1:](.*)", "RULE:[1:$1]()DEFAULT", "RULE:[2:$1](svc)s/.*/zk/", "RULE:[3:$1]DEFAULT",
            "RULE:[1:$1](bob|BOB)s/(B)?(b)?.*/$1$2$12/", "", "  DEFAULT  ", "DEFAULTRULE:[1:$1]", "RULE:[1:$1", "NONE", "RULE:[1:$1](*)", "RULE:[:$1]", "RULE:[1:$1]s/a/b", "RULE:[1:$1]s/(/b/");
        for (String r : rules) {
            for (String p : principals) {
                out.add(name(r, p, false, false));
            }
        }
        for (String p : principals) {
            out.add(name("DEFAULT", p, true, false));
            out.add(name("DEFAULT", p, false, true));
            out.add(name("DEFAULT", p, true, true));
        }
        return out;
    }

    static void json(StringBuilder b, Object v, String indent) {
        if (v instanceof Map) {
            b.append("{");
            String sep = "";
            for (Map.Entry<?, ?> e : ((Map<?, ?>) v).entrySet()) {
                b.append(sep);
                json(b, e.getKey(), "");
                b.append(": ");
                json(b, e.getValue(), indent + " ");
                sep = ", ";
            }
            b.append("}");
        } else if (v instanceof List) {
            b.append("[");
            String sep = "\n" + indent;
            for (Object e : (List<?>) v) {
                b.append(sep);
                json(b, e, indent + " ");
                sep = ",\n" + indent;
            }
            b.append("\n]");
        } else if (v instanceof Boolean || v == null) {
            b.append(v);
        } else {
            b.append('"');
            for (char c : v.toString().toCharArray()) {
                if (c < ' ' || c == '"' || c == '\\') {
                    b.append(String.format("\\u%04x", (int) c));
                } else {
                    b.append(c);
                }
            }
            b.append('"');
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("users", USERS);
        List<Object> servers = new ArrayList<>();
        for (Case c : cases()) {
            servers.add(server(c));
        }
        out.put("servers", servers);
        out.put("clients", clients());
        out.put("names", names());
        StringBuilder b = new StringBuilder();
        json(b, out, " ");
        new java.io.PrintStream(System.out, true, "UTF-8").println(b);
    }
}
