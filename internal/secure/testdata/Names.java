import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import javax.security.auth.x500.X500Principal;

/** Prints names in DER, and how Java prints each: what the scheme x509 takes as id. */
public class Names {
    static final int UTF8 = 12, PRINTABLE = 19, T61 = 20, IA5 = 22, GENERAL = 27, UNIVERSAL = 28, BMP = 30, OCTETS = 4, NUMERIC = 18, VISIBLE = 26;
    static final String CN = "550403", O = "55040a", OU = "55040b", C = "550406", L = "550407", ST = "550408", STREET = "550409";
    static final String DC = "0992268993f22c640119", UID = "0992268993f22c640101", EMAIL = "2a864886f70d010901";
    static final String SERIAL = "550405", SN = "550404", GIVEN = "55042a", TITLE = "55040c", OTHER = "2a0304";

    public static void main(String[] args) {
        String[] plain = {
            "a", "", " ", "  ", " a", "a ", " a ", "   a   b   ", "a  b", "#a", "a#b", "##", " #a", "a,b", "a+b", "a\"b", "a\\b", "a<b>c",
            "a;b", "a=b", "a/b", "a'b(c).d-e:f?", "a*b", "a@b", "a&b", "a_b", "a!b", "a%b", "a$b", "a|b", "a{b}", "a~b", "a^b", "a`b", "a[b]",
            "\\", "\\ ", " \\", ",", ", ", "a\nb", "a\rb", "a\tb", "a\u0000b", "\u0000", "a\u007fb", "a\u0001b", "\u00e4\u00f6\u00fc", "M\u00fcller, J\u00fcrgen",
            "\u65e5\u672c\u8a9e", "\ud83d\ude00", "e\u0301", "\u00e9", "\u200b", "\u202eevil", "\ufeffa", "CN=a", "A", "aA", "host.example.com",
            "spiffe://cluster.local/ns/a/sa/b", "*.example.com", "a\u00a0", "\u00a0a", "\u2028",
        };
        for (String s : plain) {
            show(rdn(ava(CN, UTF8, s)));
        }
        for (int tag : new int[] {UTF8, PRINTABLE, T61, IA5, GENERAL, NUMERIC, VISIBLE, OCTETS}) {
            show(rdn(ava(CN, tag, "a b")));
            show(rdn(ava(O, tag, "\u00e4".getBytes(StandardCharsets.ISO_8859_1))));
        }
        show(rdn(ava(CN, BMP, "ab".getBytes(StandardCharsets.UTF_16BE))));
        show(rdn(ava(CN, BMP, "\u65e5\u672c".getBytes(StandardCharsets.UTF_16BE))));
        show(rdn(ava(CN, UNIVERSAL, new byte[] {0, 0, 0, 'a'})));
        for (byte[] bad : new byte[][] {{'a', (byte) 0xff, 'b'}, {(byte) 0xe4, (byte) 0xbd}, {(byte) 0xe4, (byte) 0xbd, 'x'}, {(byte) 0xf0, (byte) 0x9f, (byte) 0x98},
            {(byte) 0xc0, (byte) 0xaf}, {(byte) 0xed, (byte) 0xa0, (byte) 0x80}, {(byte) 0x80, (byte) 0x80}, {(byte) 0xf5, 'a'}, {(byte) 0xf0, (byte) 0x9f, 'a'}, {(byte) 0xe0, (byte) 0x80, (byte) 0x80}}) {
            show(rdn(ava(CN, UTF8, bad)));
        }
        for (String id : new String[] {CN, O, OU, C, L, ST, STREET, DC, UID, EMAIL, SERIAL, SN, GIVEN, TITLE, OTHER, "550461"}) {
            show(rdn(ava(id, id == DC ? IA5 : UTF8, "x y")));
        }
        show(rdn(ava(EMAIL, IA5, "me@example.com")), rdn(ava(CN, UTF8, "me")));
        show();
        show(rdn(ava(C, PRINTABLE, "DE")), rdn(ava(O, UTF8, "Bell, Inc.")), rdn(ava(OU, UTF8, "a+b")), rdn(ava(CN, UTF8, "server 1")));
        show(rdn(ava(DC, IA5, "com")), rdn(ava(DC, IA5, "example")), rdn(ava(UID, UTF8, "u"), ava(CN, UTF8, "c")));
        show(rdn(ava(CN, UTF8, "b"), ava(CN, UTF8, "a")));
        show(rdn(ava(OU, UTF8, "x"), ava(CN, UTF8, "y"), ava(O, UTF8, "z")));
        show(rdn(ava(OTHER, UTF8, "x"), ava(CN, UTF8, " y ")), rdn(ava(L, UTF8, "#")));
        show(rdn(ava(CN, UTF8, "a")), rdn(ava(CN, UTF8, "b")), rdn(ava(CN, UTF8, "c")));
        show(rdn(ava(O, UTF8, "")), rdn(ava(CN, UTF8, "x".repeat(300))));
    }

    static void show(byte[]... rdns) {
        byte[] name = der(0x30, rdns);
        String text;
        try {
            text = quote(new X500Principal(name).getName());
        } catch (IllegalArgumentException e) {
            text = "refused";
        }
        System.out.println(hex(name) + " " + text);
    }

    static byte[] rdn(byte[]... avas) {
        return der(0x31, avas);
    }

    static byte[] ava(String id, int tag, String value) {
        return ava(id, tag, value.getBytes(StandardCharsets.UTF_8));
    }

    static byte[] ava(String id, int tag, byte[] value) {
        byte[] oid = new byte[id.length() / 2];
        for (int i = 0; i < oid.length; i++) {
            oid[i] = (byte) Integer.parseInt(id.substring(2 * i, 2 * i + 2), 16);
        }
        return der(0x30, der(6, oid), der(tag, value));
    }

    static byte[] der(int tag, byte[]... parts) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            body.writeBytes(part);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(tag);
        if (body.size() < 128) {
            out.write(body.size());
        } else {
            out.write(0x82);
            out.write(body.size() >> 8);
            out.write(body.size());
        }
        out.writeBytes(body.toByteArray());
        return out.toByteArray();
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b) {
            s.append(String.format("%02x", x));
        }
        return s.toString();
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
