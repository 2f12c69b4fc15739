package org.apache.zookeeper.common;

import java.nio.file.Files;
import java.nio.file.Path;
import java.io.ByteArrayInputStream;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;

/** Prints which certificates of a folder ZooKeeper takes for which hosts. */
public class Hosts {
    static final String[] HOSTS = {
        "a.example.com", "A.EXAMPLE.COM", "b.example.com", "a.b.example.com", "example.com", ".example.com", "a.example.com.", "ignored", "x", "a", "aa", "aba", "localhost",
        "zk-1.example.com", "zk-.example.com", "1-zk.example.com", "zk-1.b.example.com", "a.b.com", "a.b.c.com", "x.*.com",
        "first.example.com", "second.example.com", "other.example.com", "10.0.0.1", "10.0.0.2", "fe80::1", "fe80:0:0:0:0:0:0:1", "2001:db8::a", "2001:DB8:0::A", "fe80::2",
    };

    public static void main(String[] args) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        ZKHostnameVerifier verifier = new ZKHostnameVerifier();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            byte[] der = Files.readAllBytes(Path.of(args[0], i + ".crt"));
            StringBuilder hex = new StringBuilder();
            for (byte b : der) {
                hex.append(String.format("%02x", b));
            }
            System.out.println("certificate " + i + " " + hex);
            X509Certificate c = (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(der));
            for (String host : HOSTS) {
                boolean accepted = true;
                try {
                    verifier.verify(host, c);
                } catch (Exception e) {
                    accepted = false;
                }
                System.out.println(i + " " + host + " " + accepted);
            }
        }
    }
}
