// Record asks the JDK what it reads in the files beside it, and prints the answers as JSON. It
// remakes vectors.json by:
//
//   java -Dfile.encoding=UTF-8 -Dbellwether.test=VALUE Record.java *.conf > vectors.json

import java.nio.file.*;
import java.security.URIParameter;
import java.util.*;
import java.util.regex.*;
import javax.security.auth.login.*;

public class Record {
    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            b.append(c < ' ' || c == '"' || c == '\\' || c > '~' ? String.format("\\u%04x", (int) c) : c);
        }
        return b.append('"').toString();
    }

    // Each word of the file may be the name of a section; the JDK tells which is one.
    static Set<String> words(String text) {
        Set<String> out = new LinkedHashSet<>();
        Matcher m = Pattern.compile("[\\p{L}\\d$_*.-]+|\"((?:\\\\.|[^\"\\\\])*)\"").matcher(text);
        while (m.find()) {
            out.add(m.group(1) != null ? m.group(1) : m.group());
        }
        return out;
    }

    static String sections(Path file) throws Exception {
        Configuration c = Configuration.getInstance("JavaLoginConfig", new URIParameter(file.toUri()));
        StringJoiner out = new StringJoiner(",");
        for (String name : words(Files.readString(file))) {
            AppConfigurationEntry[] entries = c.getAppConfigurationEntry(name);
            if (entries == null) {
                continue;
            }
            StringJoiner modules = new StringJoiner(",", "[", "]");
            for (AppConfigurationEntry e : entries) {
                StringJoiner options = new StringJoiner(",", "{", "}");
                for (Map.Entry<String, ?> o : new TreeMap<String, Object>(e.getOptions()).entrySet()) {
                    options.add(quote(o.getKey()) + ":" + quote(o.getValue().toString()));
                }
                String flag = e.getControlFlag().toString().replaceAll(".*: ", "");
                modules.add("{\"class\":" + quote(e.getLoginModuleName()) + ",\"flag\":" + quote(flag) + ",\"options\":" + options + "}");
            }
            out.add(quote(name) + ":" + modules);
        }
        return "{" + out + "}";
    }

    public static void main(String[] args) throws Exception {
        StringJoiner out = new StringJoiner(",\n ", "{\n ", "\n}");
        for (String a : args) {
            String v;
            try {
                v = "{\"sections\":" + sections(Path.of(a)) + "}";
            } catch (Exception e) {
                Throwable t = e;
                while (t.getCause() != null) {
                    t = t.getCause();
                }
                v = "{\"error\":" + quote(String.valueOf(t.getMessage())) + "}";
            }
            out.add(quote(a) + ": " + v);
        }
        System.out.println(out);
    }
}
