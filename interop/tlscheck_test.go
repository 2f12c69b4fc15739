package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/authority"
	"bellwether/interop/target"
)

// tlsCheck runs tls check against a port with the certificates of a folder, and fails the test unless the output
// contains a text, and the command fails if and only if that text reports a fault.
func tlsCheck(t *testing.T, at, dir, shown, want string, flags ...string) {
	t.Helper()
	args := append([]string{"tls", "check", at, "--tls-ca", filepath.Join(dir, authority.CertFile)}, flags...)
	if shown != "" {
		args = append(args, "--tls-cert", shown)
	}
	out, err := execute(args...)
	if !strings.Contains(string(out), want) || (err != nil) != strings.HasPrefix(want, "fault: ") && want != noFaults {
		t.Errorf("%v: %v, want %q:\n%s", flags, err, want, out)
	}
}

// noFaults is the last line of tls check if there is none.
const noFaults = "no faults, no warnings"

// TestTLSCheckOfAPort shows that tls check explains the same faults of a client port in the same words for both
// kinds of server.
func TestTLSCheckOfAPort(t *testing.T) {
	dir, other := certificates(t), certificates(t)
	alice, stranger := filepath.Join(dir, "client.pem"), filepath.Join(other, "client.pem")
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		port := target.FreePort(t)
		s := target.StartFor(t, kind, target.Options{Extra: target.SecureKeys("ssl.", dir, map[string]string{
			"secureClientPort": port, "secureClientPortAddress": "127.0.0.1", "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
		})})
		at := "127.0.0.1:" + port
		tlsCheck(t, at, dir, alice, noFaults)
		tlsCheck(t, at, dir, "", "fault: "+at+": it wants a certificate of the client, and got none")
		tlsCheck(t, at, dir, stranger, "fault: "+at+`: it refused the certificate "CN=alice": `)
		tlsCheck(t, at, other, alice, "fault: "+at+`: the certificate "CN=server": its issuer `)
		tlsCheck(t, s.Addr, dir, alice, "fault: "+s.Addr+": it answers without TLS: connect without TLS")
		tlsCheck(t, at, dir, alice, "fault: "+at+`: the certificate "CN=server": it is not for the name zk9.example, but for localhost, 127.0.0.1`, "--tls-server-name", "zk9.example")
	})
}

// TestTLSCheckBetweenServers shows that tls check connects to the quorum port of a leader and to the election port of
// each server, of both kinds, and that the ensemble goes on.
func TestTLSCheckBetweenServers(t *testing.T) {
	dir := certificates(t)
	server := filepath.Join(dir, "server.pem")
	for _, kinds := range [][]target.Kind{
		{target.Apache, target.Apache, target.Bellwether},
		{target.Bellwether, target.Bellwether, target.Apache},
	} {
		e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: target.SecureKeys("ssl.quorum.", dir, map[string]string{
			"sslQuorum": "true", "tickTime": "500", "initLimit": "20", "syncLimit": "10"})})
		leader, err := e.AwaitWhole(electionWait)
		if err != nil {
			t.Fatal(err)
		}
		for i := range e.Servers {
			quorum, election := e.Ports(i)
			tlsCheck(t, election, dir, server, noFaults)
			tlsCheck(t, election, dir, "", "fault: "+election+": it wants a certificate of the client, and got none")
			if i == leader {
				tlsCheck(t, quorum, dir, server, noFaults)
			}
		}
		if again, err := e.AwaitWhole(electionWait); err != nil || again != leader {
			t.Errorf("server %d led, now %d: %v", leader+1, again+1, err)
		}
		e.Kill()
	}
}
