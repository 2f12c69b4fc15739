package blackbox

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/sasl/jaas"
	"bellwether/interop/target"
	"bellwether/zk"
)

// variant is one way in which the clients and the servers of a takeover connect. Debian's C client has neither
// TLS nor SASL; its clients always connect without.
type variant struct {
	lines      map[string]string // of every zoo.cfg
	properties []string          // Java properties of the servers
	access     access
	java       []string       // flags of Curator's Java process
	kazoo      map[string]any // further arguments of KazooClient
}

// variants are all variants, by name.
var variants = map[string]func(*testing.T) variant{
	"plain": func(*testing.T) variant { return variant{} },
	"TLS":   overTLS,
	"SASL":  overSASL,
}

// securePort is the port for clients with TLS.
const securePort = "2281"

// overTLS uses TLS between servers, and between servers and clients, which have certificates.
func overTLS(t *testing.T) variant {
	dir := target.Certificates(t, []string{hostAddr(0), hostAddr(1), hostAddr(2)})
	ca, pem := filepath.Join(dir, authority.CertFile), filepath.Join(dir, "client.pem")
	lines := target.SecureKeys("ssl.", dir, map[string]string{
		"secureClientPort": securePort, "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory", "sslQuorum": "true",
		"ssl.enabledProtocols": target.OldAndNewTLS,
	})
	return variant{
		lines:  target.SecureKeys("ssl.quorum.", dir, lines),
		access: access{port: securePort, options: zk.Options{TLSFiles: &zk.TLSFiles{CA: ca, Cert: pem, Key: pem}}},
		java:   target.JavaTLS(dir),
		kazoo:  map[string]any{"use_ssl": true, "verify_certs": true, "ca": ca, "certfile": pem, "keyfile": pem},
	}
}

// overSASL uses logins by DIGEST-MD5: of the servers to each other, which they require, and of the clients,
// whose znodes only the user bob may use.
func overSASL(t *testing.T) variant {
	file := filepath.Join(t.TempDir(), "jaas.conf")
	var text strings.Builder
	for section, options := range map[string]string{
		"Server": `user_bob="bobsecret"`, "Client": `username="bob" password="bobsecret"`,
		"QuorumServer": `user_zk="zksecret"`, "QuorumLearner": `username="zk" password="zksecret"`,
	} {
		fmt.Fprintf(&text, "%s {\n  %s required %s;\n};\n", section, jaas.DigestModule, options)
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	login := "java.security.auth.login.config=" + file
	return variant{
		lines: map[string]string{
			"authProvider.1":         "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
			"quorum.auth.enableSasl": "true", "quorum.auth.learnerRequireSasl": "true", "quorum.auth.serverRequireSasl": "true",
			"fips-mode": "false", // with true, ZooKeeper 3.9 refuses DIGEST-MD5
		},
		properties: []string{login},
		access:     access{options: zk.Options{SASL: zk.DigestMD5("bob", "bobsecret")}, acl: zk.CreatorACL()},
		java:       []string{"-D" + login},
		kazoo:      map[string]any{"sasl_options": map[string]string{"mechanism": "DIGEST-MD5", "username": "bob", "password": "bobsecret"}},
	}
}

// takeover is the scene in which servers are replaced.
type takeover struct {
	*scene
	variant  variant
	programs []*program
	counters *zk.Client // reads the counters of the programs
	reports  digests
	count    tally
}

// TestTakeoverAndBack carries out the steps of docs/migrate.md. Bellwether replaces three ZooKeeper servers on their
// directories, one at a time, the followers first and the leader last, and ZooKeeper replaces them again in the same way.
// Meanwhile clients write, candidates stand for an election, and clients of Curator, kazoo and the C library hold
// locks in turn. The tally is judged in the end: no acknowledged write and no session is lost, there are never two
// holders, there is one election for each leader that is replaced, requests fail only because of lost connections,
// and all digests of trees are equal.
func TestTakeoverAndBack(t *testing.T) {
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) { takeOverAndBack(t, variant(t)) })
	}
}

func takeOverAndBack(t *testing.T, v variant) {
	// A server that waits for the processor does not count as dead soon: each election must have its reason.
	extra := map[string]string{"syncLimit": "25"}
	maps.Copy(extra, v.lines)
	kinds := []target.Kind{target.Apache, target.Apache, target.Apache}
	s := &takeover{variant: v, reports: digests{}, count: tally{errors: map[string]int{}}}
	s.scene = begin(t, setting{kinds: kinds, extra: extra, properties: v.properties, access: v.access})
	s.programs = s.startPrograms()
	s.counters = s.client(s.e.Addrs(), longSession)
	clients := map[string]*zk.Client{}
	for i, server := range s.e.Servers {
		clients[nameAt(i)] = s.client(server.Addr, longSession)
	}
	c := s.stand(clients)
	c.unproven = true
	held := c.holder()
	before := s.sessions(clients)
	s.logVersions()
	s.replaceAll(target.Bellwether)
	s.logVersions()
	s.replaceAll(target.Apache)
	s.countSessions(before, s.sessions(clients))
	if now := c.holder(); now != held {
		t.Errorf("the claim changed from %v to %v, although no session ended", held, now)
	}
	c.end()
	for _, p := range s.programs {
		s.countProgram(p)
	}
	s.finish()
	s.countLoad(c)
	s.count.judge(t)
}

// sessions returns the sessions of Bellwether's clients.
func (s *takeover) sessions(candidates map[string]*zk.Client) []zk.SessionID {
	var all []zk.SessionID
	for _, w := range s.load.clients {
		all = append(all, w.c.Session().ID)
	}
	for _, who := range slices.Sorted(maps.Keys(candidates)) {
		all = append(all, candidates[who].Session().ID)
	}
	return all
}

// logVersions logs which versions the servers have.
func (s *takeover) logVersions() {
	s.t.Helper()
	for i, server := range s.e.Servers {
		text, err := server.Word("srvr")
		s.must(err)
		version, _, _ := strings.Cut(text, "\n")
		s.t.Logf("server %d: %s", i+1, version)
	}
}

// replaceAll replaces every server by one of another kind: the followers first, the leader last.
func (s *takeover) replaceAll(kind target.Kind) {
	s.t.Helper()
	for range s.e.Servers {
		leader := s.awaitWhole()
		next := leader
		for i, server := range s.e.Servers {
			if server.Kind != kind && i != leader {
				next = i
				break
			}
		}
		if s.e.Servers[next].Kind == kind {
			s.t.Fatalf("server %d leads and is replaced already", next+1)
		}
		s.replace(next, kind, next == leader)
	}
}

// replace replaces one server. Before Bellwether takes over, preflight must say yes, and data check that the stopped server's data are sound.
func (s *takeover) replace(i int, kind target.Kind, leads bool) {
	s.t.Helper()
	server := s.e.Servers[i]
	if kind == target.Bellwether {
		s.moveFlags(i)
		s.preflight(i)
	}
	s.collectDigests()
	known, epoch := s.reports.zxids(), s.epoch()
	gap := s.watchGap(s.any)
	began := time.Now()
	s.must(server.Stop())
	server.Kind = kind
	if kind == target.Bellwether {
		s.bellwether(i, "data", "check", "--config", server.ConfigPath())
	}
	s.load.awaitWrites(5, s.any)
	s.restart(i)
	s.awaitWhole()
	s.load.awaitWrites(10)
	took, longest := time.Since(began), gap()
	s.awaitTurns()
	s.awaitSameDigest(known)
	s.countStep(step{server: i + 1, leads: leads, kind: kind, elections: s.epoch() - epoch, took: took, gap: longest})
}

// moveFlags writes the flags with which Java is started into java.env beside zoo.cfg, as the runbook says, so that Bellwether reads them too.
func (s *takeover) moveFlags(i int) {
	s.t.Helper()
	var flags []string
	for _, p := range s.variant.properties {
		flags = append(flags, "-D"+p)
	}
	file := filepath.Join(filepath.Dir(s.e.Servers[i].ConfigPath()), "java.env")
	s.must(os.WriteFile(file, []byte("SERVER_JVMFLAGS=\""+strings.Join(flags, " ")+"\"\n"), 0o600))
}

// preflight runs preflight on the host of a server.
func (s *takeover) preflight(i int) {
	s.t.Helper()
	server := s.e.Servers[i]
	s.bellwether(i, "preflight", "--config", server.ConfigPath(), "--pid", strconv.Itoa(server.PID()), "--live", s.e.Addrs())
}

// bellwether runs the binary on the host of a server. It must succeed.
func (s *takeover) bellwether(i int, args ...string) {
	s.t.Helper()
	binary, err := target.Binary()
	s.must(err)
	args = slices.Concat(s.hosts[i].place().Enter, []string{binary}, args)
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		s.t.Errorf("%q of server %d: %v: %s", args, i+1, err, out)
	}
}

// watchGap measures the longest time in which no write of a client is acknowledged, until the result is called.
func (s *takeover) watchGap(w *worker) func() time.Duration {
	stop, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		last, since, most := s.load.acknowledged()[w.id], time.Now(), time.Duration(0)
		for {
			now := s.load.acknowledged()[w.id]
			most = max(most, time.Since(since))
			if now != last {
				last, since = now, time.Now()
			}
			select {
			case <-stop:
				longest <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return sync.OnceValue(func() time.Duration {
		close(stop)
		return <-longest
	})
}
