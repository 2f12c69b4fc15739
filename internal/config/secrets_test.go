package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadableSecretsCauseWarnings shows that a file with a secret causes a warning if others than its
// owner may read it or if it is a directory, that certificates and files of unused keys do not, and that no warning stops a start.
func TestReadableSecretsCauseWarnings(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"private.pem": 0o600, "group.pem": 0o640, "all.pem": 0o604, "ca.pem": 0o644} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.pem"), 0o755); err != nil {
		t.Fatal(err)
	}
	const trust, port = "\nssl.trustStore.location=KEYS/ca.pem", "\nsecureClientPort=2281"
	for _, c := range []struct{ lines, key, who string }{
		{"ssl.keyStore.location=KEYS/private.pem" + trust + port, "", ""},
		{"ssl.keyStore.location=KEYS/missing.pem" + trust + port, "", ""},
		{"ssl.keyStore.location=KEYS/group.pem" + trust, "", ""}, // no port uses it
		{"ssl.keyStore.location=KEYS/group.pem" + trust + port, "ssl.keyStore.location names KEYS/group.pem, which holds a private key", "its group (mode 0640)"},
		{"ssl.keyStore.location=KEYS/all.pem" + trust + port, "ssl.keyStore.location", "every user of this machine (mode 0604)"},
		{"ssl.keyStore.location=KEYS/private.pem\nssl.keyStore.passwordPath=KEYS/group.pem" + trust + port, "ssl.keyStore.passwordPath names KEYS/group.pem, which holds a password", "its group"},
		{"sslQuorum=true\nssl.quorum.keyStore.location=KEYS/all.pem\nssl.quorum.trustStore.location=KEYS/ca.pem", "ssl.quorum.keyStore.location", "every user"},
		{"ssl.keyStore.location=KEYS/folder.pem" + trust + port, "ssl.keyStore.location names KEYS/folder.pem, which is a directory: name the file that holds a private key", ""},
		{"ssl.keyStore.location=KEYS/private.pem\nssl.keyStore.passwordPath=KEYS" + trust + port, "ssl.keyStore.passwordPath names KEYS, which is a directory: name the file that holds a password", ""},
		{"sessionSecretFile=KEYS/group.pem", "sessionSecretFile names KEYS/group.pem, which holds the secret of the sessions", "its group"},
	} {
		got := texts(load(t, "", strings.ReplaceAll(sample+"autopurge.purgeInterval=1\n"+c.lines, "KEYS", dir)).Warnings)
		got = strings.ReplaceAll(got, dir, "KEYS")
		if !strings.Contains(got, c.key) || !strings.Contains(got, c.who) || c.key == "" && got != "" || strings.Count(got, "chmod") != min(len(c.who), 1) {
			t.Errorf("%q: warnings %q, want %q and %q", c.lines, got, c.key, c.who)
		}
	}
}

// TestReadableLoginsCauseWarnings shows that a JAAS file with passwords, and the key tabs that a JAAS file names,
// cause a warning if others than their owner may read them. A JAAS file without passwords is not a secret.
func TestReadableLoginsCauseWarnings(t *testing.T) {
	for _, c := range []struct{ jaas, want string }{
		{`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="x"; };`, "names DIR/jaas.conf, which holds passwords"},
		{`Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="DIR/keys" principal="zookeeper/a@B"; };`, "names DIR/keys, which holds keys of Kerberos"},
		{`Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="DIR/none" principal="zookeeper/a@B"; };`, ""},
	} {
		path := write(t, sample+"autopurge.purgeInterval=1\n", "jaas.conf", c.jaas, "keys", "")
		dir := filepath.Dir(path)
		loaded, err := Load(path, "-Djava.security.auth.login.config="+dir+"/jaas.conf")
		if err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(texts(loaded.Warnings), dir, "DIR")
		if !strings.Contains(got, c.want) || strings.Count(got, "chmod") != min(len(c.want), 1) {
			t.Errorf("%s: %q, want %q", c.jaas, got, c.want)
		}
	}
}

// TestUnificationNeedsAClientPort shows that client.portUnification without a client port causes a warning.
func TestUnificationNeedsAClientPort(t *testing.T) {
	const lines = "dataDir=/nonexistent\nautopurge.purgeInterval=1\nclient.portUnification=true\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/t.pem\n"
	if got := texts(load(t, "", lines+"secureClientPort=2281").Warnings); !strings.HasPrefix(got, "zoo.cfg:3: client.portUnification is true, but there is no clientPort: ") {
		t.Errorf("warnings %q", got)
	}
	if got := texts(load(t, "", lines+"clientPort=2181").Warnings); got != "" {
		t.Errorf("warnings %q with a client port", got)
	}
}
