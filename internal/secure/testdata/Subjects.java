import javax.security.auth.x500.X500Principal;

/** Prints which texts Java takes for a subject: those that are valid ids in ACLs of the scheme x509. */
public class Subjects {
    public static void main(String[] args) {
        String[] texts = {
            "", " ", "a", "CN", "CN=", "CN=a", " CN=a", "CN =a", "CN= a", "CN=a ", "cn=a", "Cn=a", "XX=a", "=a", "=", "CN==a", "CN=a=b", "CN=a,", ",CN=a", "CN=a,,O=b", "CN=a, O=b",
            "CN=a ,O=b", "CN=a;O=b", "CN=a; O=b", "CN=a+O=b", "CN=a + O=b", "CN=a+", "+CN=a", "CN=a+b", "CN=a,b", "CN=a\\,b", "CN=a\\+b", "CN=\"a,b\"", "CN=\"a", "CN=a\"b", "CN=a\"", "CN=\"a\"b", "CN=\"a\" ,O=b", "CN=\"a\\\"b\"",
            "CN=\\a", "CN=\\", "CN=a\\", "CN=a\\ ", "CN=\\ a", "CN=\\#a", "CN=#a", "CN=#", "CN=#0c0161", "CN=#0C0161", "CN=#0c01", "CN=#0c0", "CN=#zz", "CN=#0c0161 ", "CN=#0c0161,O=b", "CN=#0c0161+O=b", "CN=#04036162", "CN=#16", "CN=#1603616263", "CN=a#b",
            "CN=\\61", "CN=\\61b", "CN=\\6", "CN=\\zz", "CN=\\c3\\a4", "CN=\\C3\\A4", "CN=\\ff", "CN=a\\00b", "CN=\u00e4", "CN=\u65e5\u672c", "\u00e4=a", "CN=a\nb", "CN=a<b", "CN=a>b", "CN=a\\<b\\>", "CN=a;b", "CN=a\\;b", "CN=a=b\\=c", "CN=a\\=b", "CN=<", "CN=\\<", "CN=a b", "CN=a  b", "CN=a*b", "CN=*",
            "O=a", "OU=a", "C=DE", "C=a", "L=a", "ST=a", "S=a", "STREET=a", "DC=a", "DC=\u00e4", "UID=a", "EMAILADDRESS=a@b", "EMAIL=a@b", "E=a@b", "SERIALNUMBER=1", "SN=a", "SURNAME=a", "GIVENNAME=a", "INITIALS=a", "GENERATION=a", "T=a", "TITLE=a", "IP=1.2.3.4",
            "DNQ=a", "DNQUALIFIER=a", "NAME=a", "PSEUDONYM=a",
            "1.2.3.4=a", "OID.1.2.3.4=a", "oid.1.2.3.4=a", "1.2.3.4=#0c0161", "2.5.4.3=a", "1=a", "1.=a", ".1=a", "1.2=a", "3.1=a", "0.40=a", "1.40=a", "2.999=a", "1.2.a=a", "1..2=a", "1.02=a", "1.2.840.113549.1.9.1=#160e6d65406578616d706c652e636f6d", "OID.=a", "OID=a",
            "CN=server 1,OU=a\\+b,O=Bell\\, Inc.,C=DE", "UID=u+CN=c,DC=example,DC=com", "CN=\\ a\\ ", "CN=a\\\\b", "CN=\\\\", "CN=a,CN=a", "alice", "alice@example.com", "spiffe://prod/app", "digest:x", "CN=a/O=b", "/CN=a/O=b", "CN:a", "C N=a", "CN=a\tb", "CN\t=a", "CN=a,O", "CN=a,O=", "CN=,O=a", "CN=a;", "O=a;;O=b",
            "CN=a, ", "CN=a ; O=b ; C=DE", "CN=\"\"", "CN=\"a+b=c;d<e>\"", "CN=\" a \"", "CN= \"a\"", "CN=a \"b\"", "CN=\"a\",O=\"b\"", "CN=\"a\\,b\"", "CN=\"a\\b\"", "CN=\"\\61\"",
        };
        for (String text : texts) {
            boolean valid = true;
            try {
                new X500Principal(text);
            } catch (IllegalArgumentException e) {
                valid = false;
            }
            System.out.println(valid + " " + quote(text));
        }
    }

    /** Quotes a text as a Go literal in ASCII. */
    static String quote(String text) {
        StringBuilder s = new StringBuilder("\"");
        text.codePoints().forEach(c -> {
            if (c == '"' || c == '\\') {
                s.append('\\').append((char) c);
            } else if (c >= ' ' && c < 127) {
                s.append((char) c);
            } else {
                s.append(String.format("\\U%08x", c));
            }
        });
        return s.append('"').toString();
    }
}
