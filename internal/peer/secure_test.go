package peer

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// purposes provides the functions of a Secure. For each purpose, the client sends one letter of word
// and the server expects that letter.
type purposes struct {
	mu   sync.Mutex
	seen map[Purpose]ensemble.ServerID // by purpose: the server that was dialled, or that the peer claims to be
	word string
}

func (p *purposes) client(c net.Conn, what Purpose, _ ensemble.ServerID, _ string) (net.Conn, error) {
	_, err := c.Write([]byte{p.word[what]})
	return c, err
}

func (p *purposes) server(c net.Conn, what Purpose, who ensemble.ServerID, _ string) (net.Conn, error) {
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return nil, err
	}
	if b[0] != p.word[what] {
		return nil, errors.New("a wrong word")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[what] = who
	return c, nil
}

// TestZookeeper4886SecureHooksAreCalled: both ports call the hooks in order, and lose no frames that
// arrive directly after the handshake. A server whose handshake fails is refused, and the others are
// not (ZOOKEEPER-4886). This holds for each server that is dialled, also for an observer.
func TestZookeeper4886SecureHooksAreCalled(t *testing.T) {
	l := newLAN(t, 3, 1)
	p := &purposes{seen: map[Purpose]ensemble.ServerID{}, word: "abc"}
	secure := func(o *Options) { o.Secure = Secure{p.client, p.server} }
	log, lines := logLines()
	m1, s1 := l.mesh(1, secure, func(o *Options) { o.Log = log })
	m3, s3 := l.mesh(3, secure)
	m1.Send(3, vote(1))
	m3.Send(1, vote(2))
	await(t, s3, heard(1, 1))
	await(t, s1, heard(3, 2))
	l.mesh(2, func(o *Options) { o.Secure = Secure{(&purposes{word: "xyz"}).client, p.server} })
	eventually(t, "a refusal", func() bool { return strings.Contains(lines(), "a wrong word") })

	leader, ls := l.links(1, secure)
	learner, fs := l.links(3, secure)
	if err := leader.Listen(); err != nil {
		t.Fatal(err)
	}
	learner.Dial(1)
	learner.Send(await[Linked](t, fs, nil).Link, packet(peerwire.PacketAck, 3, nil))
	received(t, ls, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen[ForElection] != peerwire.NoServer || p.seen[ForVotes] <= 0 || p.seen[ForLearner] != peerwire.NoServer {
		t.Errorf("%v", p.seen)
	}
}

// TestTwoServersWithOneID: if two servers have the same id, an operator is told, and the newest
// connection is used, as in ZooKeeper.
func TestTwoServersWithOneID(t *testing.T) {
	l := newLAN(t, 2, 0)
	log, lines := logLines()
	_, s := l.mesh(1, func(o *Options) { o.Log = log })
	first := callAs(t, l.election(1), 2, "127.0.0.1:1")
	await(t, s, up(2))
	second := callAs(t, l.election(1), 2, "127.0.0.1:2")
	await(t, s, up(2))
	first.over()
	second.send(frame(vote(4)))
	await(t, s, heard(2, 4))
	if !strings.Contains(lines(), "use the same server id") {
		t.Error(lines())
	}
}
