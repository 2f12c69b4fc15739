package secure

import "testing"

// BenchmarkHandshake measures a handshake in which both ends verify certificates, and one byte in each
// direction.
func BenchmarkHandshake(b *testing.B) {
	ca := authority(b, "ca")
	s := openStore(b, Servers, ca.issue(b, "server", hosts("127.0.0.1")), ca)
	server := serverOf(b, s)
	for b.Loop() {
		if _, atServer, atClient := connect(b, server, s.Client(b.Context(), "", loopback)); atServer != nil || atClient != nil {
			b.Fatal(atServer, atClient)
		}
	}
}

// BenchmarkReload reads a changed key store and its trust store.
func BenchmarkReload(b *testing.B) {
	ca := authority(b, "ca")
	one, two := ca.issue(b, "one", nil), ca.issue(b, "two", nil)
	settings := settingsFor(b, Servers, b.TempDir(), one, ca)
	s, err := openAt(settings, atNoon)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		write(b, settings.KeyStore.Location, []*signed{two, one}[i%2].pem(b, true))
		if changed, err := s.Reload(); !changed || err != nil {
			b.Fatal(changed, err)
		}
	}
}
