package blackbox

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
	"bellwether/zk"
)

// stranger is a program that opens the ports between servers.
type stranger struct {
	what string
	tls  *tls.Config         // nil: without TLS
	ids  []ensemble.ServerID // the ids that it claims
	dial func(context.Context, string, string) (net.Conn, error)
	// joins says that it may join as a learner, because it has a server's certificate and claims an id of no member.
	joins bool
	got   atomic.Int64 // bytes that servers have sent to it, inside TLS if it uses TLS
}

// throw opens a connection, sends bytes, and reads until the server ends the connection or is silent for a
// short time.
func (p *stranger) throw(ctx context.Context, address string, b []byte) {
	raw, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return // the port is closed, or the server accepts no more connections
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(300 * time.Millisecond))
	c := raw
	if p.tls != nil {
		with := tls.Client(raw, p.tls)
		if with.HandshakeContext(ctx) != nil {
			return
		}
		c = with
	}
	c.Write(b)
	n, _ := io.Copy(io.Discard, c)
	p.got.Add(n)
}

// packetOf returns a packet between leader and learner.
func packetOf(kind peerwire.PacketType, z wire.Zxid, data []byte) []byte {
	return wire.Append(nil, &peerwire.QuorumPacket{Type: kind, Zxid: z, Data: data})
}

// quorumMessages returns what a stranger sends to a quorum port in the name of a server: every kind of
// packet first, after the first packet of a learner, and after its promise of an epoch.
func quorumMessages(id ensemble.ServerID, epoch wire.Epoch) [][]byte {
	info := wire.Append(nil, &peerwire.LearnerInfo{Server: id, Version: peerwire.QuorumVersion})
	promise := packetOf(peerwire.PacketAckEpoch, wire.MakeZxid(epoch, 1<<30), wire.Append(nil, &peerwire.EpochAck{CurrentEpoch: int32(epoch)}))
	session := wire.Append(nil, &peerwire.TouchedSessions{Sessions: []peerwire.TouchedSession{{Session: 1, TimeoutMS: math.MaxInt32}}})
	request := wire.Append(nil, &peerwire.ForwardedRequest{Session: 7, Cxid: 1, Op: wire.OpCreate, Body: []byte("garbage")})
	revalidate := wire.Append(nil, &peerwire.Revalidation{Session: 7, TimeoutMS: -1})
	datas := [][]byte{nil, []byte("garbage"), session, request, revalidate, make([]byte, 1<<20)}
	high := []wire.Zxid{0, wire.MakeZxid(epoch, 1), wire.MakeZxid(epoch, math.MaxUint32), wire.MakeZxid(math.MaxInt32, 1), -1}
	var all [][]byte
	for i, kind := range kinds {
		b := packetOf(kind, high[i%len(high)], datas[i%len(datas)])
		all = append(all, b, b[:len(b)/2])
		for _, accepted := range []wire.Epoch{0, epoch - 1, epoch} {
			for _, first := range []peerwire.PacketType{peerwire.PacketFollowerInfo, peerwire.PacketObserverInfo} {
				hello := packetOf(first, wire.MakeZxid(accepted, 0), info)
				all = append(all, append(hello[:len(hello):len(hello)], b...), append(append(hello[:len(hello):len(hello)], promise...), b...))
			}
		}
	}
	for _, accepted := range []wire.Epoch{epoch + 1, epoch + 100, 1 << 30, math.MaxInt32, math.MaxUint32} {
		all = append(all, packetOf(peerwire.PacketFollowerInfo, wire.MakeZxid(accepted, 0), info), packetOf(peerwire.PacketObserverInfo, wire.MakeZxid(accepted, 0), info))
	}
	oversize := packetOf(peerwire.PacketFollowerInfo, 0, nil)[:12]
	return append(all, append(oversize, 0x7f, 0xff, 0xff, 0xff), append(oversize[:12:12], 0xff, 0xff, 0xff, 0xfe))
}

// kinds are all types of packets, and some that do not exist.
var kinds = func() []peerwire.PacketType {
	all := []peerwire.PacketType{-1, 0, 99, peerwire.PacketHandOver, math.MaxInt32}
	for kind := peerwire.PacketRequest; kind <= peerwire.PacketInformActivate; kind++ {
		all = append(all, kind)
	}
	return all
}()

// electionMessages returns what a stranger sends to an election port in the name of a server: each form of
// the first message, and after it notifications of each form, state and length.
func electionMessages(id ensemble.ServerID, epoch wire.Epoch) [][]byte {
	many := strings.TrimSuffix(strings.Repeat("10.255.255.1:3888|", 100), "|")
	var all [][]byte
	for _, first := range []peerwire.InitialMessage{
		{Version: peerwire.InitialBare, Server: id},
		{Version: peerwire.InitialOne, Server: id, Addresses: []string{"10.255.255.1:3888"}},
		{Version: peerwire.InitialMany, Server: id, Addresses: []string{"10.255.255.1:3888", "0.0.0.0:1"}},
		{Version: peerwire.InitialMany, Server: id, Addresses: strings.Split(many, "|")},
	} {
		hello := wire.Append(nil, &first)
		all = append(all, hello, hello[:len(hello)/2])
		for _, version := range []peerwire.NotificationVersion{peerwire.NotificationBare, peerwire.NotificationPlain, peerwire.NotificationConfig, 3} {
			for state := range peerwire.ServerState(5) {
				vote := wire.AppendFrame(nil, &peerwire.Notification{State: state, Leader: id, Zxid: wire.MakeZxid(epoch+9, 9), ElectionEpoch: 1 << 40,
					PeerEpoch: epoch + 9, Version: version, Config: "server.1=10.255.255.1:2888:3888:participant;2181\nversion=ffffffff"})
				all = append(all, append(hello[:len(hello):len(hello)], vote...), append(hello[:len(hello):len(hello)], vote[:len(vote)/2]...))
			}
		}
		all = append(all, append(hello[:len(hello):len(hello)], 0x7f, 0xff, 0xff, 0xff), append(hello[:len(hello):len(hello)], 0xff, 0xff, 0xff, 0xff), append(hello[:len(hello):len(hello)], 0, 0, 0, 0))
	}
	return all
}

// attack sends all messages to the ports of all servers, several at a time.
func (s *scene) attack(p *stranger, epoch wire.Epoch) {
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMax)
	defer cancel()
	slots := make(chan struct{}, 64)
	var group sync.WaitGroup
	n := 0
	for i := range s.e.Servers {
		for _, id := range p.ids {
			for port, messages := range map[string][][]byte{":2888": quorumMessages(id, epoch), ":3888": electionMessages(id, epoch)} {
				for _, b := range messages {
					n++
					slots <- struct{}{}
					group.Go(func() {
						p.throw(ctx, s.hosts[i].addr+port, b)
						<-slots
					})
				}
			}
		}
	}
	group.Wait()
	s.t.Logf("%s: %d connections", p.what, n)
}

// steady holds what must not change while a stranger attacks.
type steady struct {
	down    []int // servers that do not run
	leader  int
	epoch   wire.Epoch
	looked  []int // how often each server that runs has looked for a leader
	clients []zk.Status
}

// steady waits until all servers except those in down serve, and the clients at them.
func (s *scene) steady(down ...int) steady {
	s.t.Helper()
	up := s.others(down...)
	s.awaitRoles("do not serve", up, func(role string) bool { return role == "leader" || role == "follower" })
	now := steady{down: down, leader: s.awaitLeader(down...)}
	for _, i := range up {
		text, err := s.e.Servers[i].Word("mntr")
		s.must(err)
		_, looked, _ := strings.Cut(text, "zk_looking_count\t")
		looked, _, _ = strings.Cut(looked, "\n")
		n, err := strconv.Atoi(looked)
		s.must(err)
		now.looked = append(now.looked, n)
	}
	text, err := s.e.Servers[now.leader].Word("srvr")
	s.must(err)
	_, zxid, _ := strings.Cut(text, "\nZxid: 0x")
	zxid, _, _ = strings.Cut(zxid, "\n")
	z, err := strconv.ParseInt(zxid, 16, 64)
	s.must(err)
	now.epoch = wire.Zxid(z).Epoch()
	for _, w := range s.clientsOf(down) {
		now.clients = append(now.clients, w.c.State())
	}
	return now
}

// clientsOf returns the clients that do not depend on the servers in down.
func (s *scene) clientsOf(down []int) []*worker {
	return append(s.workers(s.others(down...)...), s.any)
}

// unchanged fails the test if a leader, an epoch or a client's connection has changed.
func (s *scene) unchanged(what string, before steady) {
	s.t.Helper()
	now := s.steady(before.down...)
	if now.leader != before.leader || now.epoch != before.epoch || fmt.Sprint(now.looked) != fmt.Sprint(before.looked) {
		s.t.Errorf("%s: server %d led epoch %d, now server %d leads epoch %d; elections %v, before %v", what, before.leader+1, before.epoch, now.leader+1, now.epoch, now.looked, before.looked)
	}
	for i, c := range now.clients {
		if b := before.clients[i]; c.Server != b.Server || !c.Since.Equal(b.Since) {
			s.t.Errorf("%s: client %d was connected since %v, now %v", what, i, b.Since, c.Since)
		}
	}
}

// unanswered fails the test if a server has answered a stranger with TLS that may not join.
func (s *scene) unanswered(p *stranger) {
	s.t.Helper()
	if n := p.got.Load(); p.tls != nil && !p.joins && n > 0 {
		s.t.Errorf("%s: servers sent %d bytes", p.what, n)
	}
}

// memory returns the resident memory of all servers that are not in down, in MiB.
func (s *scene) memory(down ...int) int {
	total := 0
	for _, i := range s.others(down...) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.e.Servers[i].PID()))
		s.must(err)
		_, rss, _ := strings.Cut(string(b), "VmRSS:")
		kib, err := strconv.Atoi(strings.Fields(rss)[0])
		s.must(err)
		total += kib / 1024
	}
	return total
}

// hostileMemoryMax is by how much the memory of all servers together may grow during an attack, in MiB.
const hostileMemoryMax = 600

// issueFor makes an authority with the certificates of a test of three servers: server.pem names all of
// them, second.pem only the second, client.pem none.
func issueFor(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	all := []string{"10.0.1.2", "10.0.2.2", "10.0.3.2"}
	_, err := authority.Init(authority.Plan{Dir: dir, Now: time.Now(), Subjects: []authority.Subject{
		{File: "server.pem", Name: "server", Hosts: all}, {File: "second.pem", Name: "second", Hosts: all[1:2]}, {File: "client.pem", Name: "client"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// shows returns the configuration of a stranger that shows a certificate; "" for none.
func shows(t *testing.T, dir, file string) *tls.Config {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true}
	if file != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, file), filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// withTLS is an ensemble with TLS between servers, with the certificates of issueFor. Its limits are the usual
// ones, so that no term ends because the machine stands still for a second.
func withTLS(dir string) setting {
	extra := maps.Clone(usual)
	maps.Copy(extra, map[string]string{
		"sslQuorum": "true", "ssl.quorum.clientHostnameVerification": "false", // so that the claimed id is what is refused
		"ssl.quorum.keyStore.location":   filepath.Join(dir, "server.pem"),
		"ssl.quorum.trustStore.location": filepath.Join(dir, authority.CertFile),
	})
	return setting{extra: extra, alone: true}
}

// TestHostileProcessWithTLS sends every kind of message of both protocols between servers, whole, cut off
// and too long, to an ensemble with TLS that serves clients. It connects in turn without TLS, without a certificate,
// with a certificate of another authority, with that of a client, and with that of another member than the one
// whose id it claims. Nothing changes.
func TestHostileProcessWithTLS(t *testing.T) {
	dir, other := issueFor(t), issueFor(t)
	s := begin(t, withTLS(dir))
	s.steadyUnder([]*stranger{
		{what: "without TLS", ids: []ensemble.ServerID{1}},
		{what: "without a certificate", tls: shows(t, dir, ""), ids: []ensemble.ServerID{1}},
		{what: "with a certificate of another authority", tls: shows(t, other, "server.pem"), ids: []ensemble.ServerID{1}},
		{what: "with the certificate of a client", tls: shows(t, dir, "client.pem"), ids: []ensemble.ServerID{1}},
		{what: "with the certificate of another member", tls: shows(t, dir, "second.pem"), ids: []ensemble.ServerID{1, 3}},
		{what: "with the certificate of a member and the id of none", tls: shows(t, dir, "second.pem"), ids: []ensemble.ServerID{77}, joins: true},
	})
}

// TestHostileProcessWithoutTLS does the same without TLS, with ids that no member has, and with those of
// members that are connected. docs/security.md says what such a program can do nevertheless.
func TestHostileProcessWithoutTLS(t *testing.T) {
	s := begin(t, setting{extra: usual, alone: true})
	s.steadyUnder([]*stranger{
		{what: "with ids of no member", ids: []ensemble.ServerID{77, -5, math.MaxInt64}},
		{what: "with the ids of connected members", ids: []ensemble.ServerID{1, 2, 3}},
	})
}

// steadyUnder attacks as each of the strangers while clients work and the servers in down do not run, and checks
// that nothing changes.
func (s *scene) steadyUnder(strangers []*stranger, down ...int) {
	s.t.Helper()
	s.load.awaitWrites(5, s.clientsOf(down)...)
	before, memory := s.steady(down...), s.memory(down...)
	for _, p := range strangers {
		p.dial = s.hosts[s.clientHost()].dial
		s.attack(p, before.epoch)
		s.load.awaitWrites(5, s.clientsOf(down)...)
		s.unchanged(p.what, before)
		s.unanswered(p)
		if now := s.memory(down...); now > memory+hostileMemoryMax {
			s.t.Errorf("%s: the servers use %d MiB, before %d MiB", p.what, now, memory)
		}
	}
	s.t.Logf("memory of all servers: %d MiB before, %d MiB after", memory, s.memory(down...))
	s.finish()
}
