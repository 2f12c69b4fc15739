package target

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"bellwether/internal/authority"
)

// Certificates makes an authority and certificates, and returns their folder. server.pem is for
// servers with these names and addresses, client.pem for the client alice. Each name in others is
// that of a further client, with a file of the same name.
func Certificates(t testing.TB, hosts []string, others ...string) string {
	t.Helper()
	dir := t.TempDir()
	subjects := []authority.Subject{{File: "server.pem", Name: "server", Hosts: hosts}, {File: "client.pem", Name: "alice"}}
	for _, name := range others {
		subjects = append(subjects, authority.Subject{File: name + ".pem", Name: name})
	}
	if _, err := authority.Init(authority.Plan{Dir: dir, Now: time.Now(), Subjects: subjects}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// OldAndNewTLS is a value of ssl.enabledProtocols. Java's client of ZooKeeper 3.8 knows only TLS 1.2, and a server of 3.9
// without this key accepts only TLS 1.3.
const OldAndNewTLS = "TLSv1.3,TLSv1.2"

// SecureKeys returns the lines of zoo.cfg for a family of TLS keys, such as ssl.quorum., and those in also.
func SecureKeys(family, dir string, also map[string]string) map[string]string {
	keys := map[string]string{
		family + "keyStore.location":   filepath.Join(dir, "server.pem"),
		family + "trustStore.location": filepath.Join(dir, authority.CertFile),
	}
	maps.Copy(keys, also)
	return keys
}

// JavaTLS returns the flags with which Java's client uses TLS and the certificate of alice.
func JavaTLS(dir string) []string {
	return []string{"-Dzookeeper.client.secure=true", "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
		"-Dzookeeper.ssl.keyStore.location=" + filepath.Join(dir, "client.pem"),
		"-Dzookeeper.ssl.trustStore.location=" + filepath.Join(dir, authority.CertFile)}
}
