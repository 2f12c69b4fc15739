package interop

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

const (
	shadowTimeout = 4 * time.Minute
	shadowClients = 4
	shadowSteps   = 400 // of each client
)

// shadowed is an ensemble of three ZooKeeper servers and a Bellwether observer, which the configuration of the others
// does not name.
type shadowed struct {
	e        *target.Ensemble
	observer string
}

func shadowEnsemble(t *testing.T) shadowed {
	t.Helper()
	return shadowEnsembleWith(t, nil)
}

// shadowEnsembleWith starts an ensemble with further lines of zoo.cfg and Java properties.
func shadowEnsembleWith(t *testing.T, extra map[string]string, properties ...string) shadowed {
	t.Helper()
	keys := map[string]string{"tickTime": "2000", "initLimit": "60", "syncLimit": "30"}
	maps.Copy(keys, extra)
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{target.Apache, target.Apache, target.Apache, target.Bellwether}, Observers: 1, Unlisted: true,
		Extra: keys, Properties: properties})
	awaitRoles(t, e)
	return shadowed{e, e.Servers[3].Addr}
}

// shadowRun is a running relay.
type shadowRun struct {
	*relay.Relay
	addr string
	end  func() *shadow.Report // ends it and returns its last report
}

// run starts a relay to some of the ZooKeeper servers.
func (s shadowed) run(t *testing.T, observer string, servers ...*target.Server) shadowRun {
	t.Helper()
	return s.runWith(t, relay.Options{Observer: observer}, servers...)
}

func (s shadowed) runWith(t *testing.T, opt relay.Options, servers ...*target.Server) shadowRun {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range servers {
		opt.Old = append(opt.Old, server.Addr)
	}
	opt.Listen, opt.Found, opt.Logger = listen, func(shadow.Found) {}, slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := relay.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.Check(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	end := sync.OnceValue(func() *shadow.Report {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		return r.Report()
	})
	t.Cleanup(func() { end() })
	return shadowRun{r, listen.Addr().String(), end}
}

// TestShadowOfZooKeeper runs clients in Go and Python against ZooKeeper servers through the relay, and compares the replies
// with a Bellwether observer. There must be no difference, and most replies must be compared.
func TestShadowOfZooKeeper(t *testing.T) {
	t.Parallel()
	s := shadowEnsemble(t)
	all := s.run(t, s.observer, s.e.Servers[:3]...)
	addr := all.addr
	var wait sync.WaitGroup
	for i := range shadowClients {
		wait.Go(func() { shadowWork(t, addr, uint64(i)) })
	}
	wait.Go(func() { shadowGoZK(t, addr) })
	wait.Wait()
	one := s.run(t, s.observer, s.e.Servers[0]) // the scripts expect one server
	for _, script := range []string{"workload", "lock", "queue_and_counter", "watches"} {
		way := target.NewProxy(t, one.addr)
		target.Script{Args: []string{debianPython, "-B", "python/" + script + ".py", one.addr, way.Addr, fresh("shadow-" + script)}, Commands: proxyCommands(way)}.Pass(t)
	}
	noDifference(t, all.end(), "create create2 createContainer createTTL delete exists getACL getAllChildrenNumber getChildren2 getData getEphemerals multi multiRead notification setACL setData whoAmI auth")
	noDifference(t, one.end(), "create delete exists getACL getChildren getData multi notification setACL setData")
	s.awaitSessions(t)
}

// noDifference fails the test if a report has a difference, or if no reply of one of the operations was compared.
func noDifference(t *testing.T, report *shadow.Report, operations string) {
	t.Helper()
	var text strings.Builder
	report.Print(&text)
	t.Log(text.String())
	for _, d := range report.Differences {
		t.Error(d)
	}
	for _, op := range strings.Fields(operations) {
		if tally := report.Operations[op]; tally == nil || tally.Equal == 0 {
			t.Errorf("%s was not compared: %+v", op, tally)
		}
	}
}

// awaitSessions waits until the observer has no session of the relay.
func (s shadowed) awaitSessions(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(eventTimeout); ; <-tick.C {
		text, err := target.Word(s.observer, "cons")
		if err == nil && !strings.Contains(text, "sid=") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the observer still has sessions: %v\n%s", err, text)
		}
	}
}

// shadowWork carries out random operations on few znodes. Errors of the operations are expected.
func shadowWork(t *testing.T, addr string, seed uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), shadowTimeout)
	defer cancel()
	o := &zk.Options{}
	if seed%2 == 1 {
		o.Auth = []zk.Auth{{Scheme: "digest", Data: fmt.Appendf(nil, "user%d:pw", seed)}}
	}
	c, err := zk.Connect(ctx, addr, o)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close(ctx)
	r := rand.New(rand.NewPCG(seed, 1))
	path := func() string { return []string{"/s0", "/s1", "/s0/a", "/s0/b", "/s1/c", "/s0/a/d"}[r.IntN(6)] }
	kinds := []zk.CreateOption{zk.Persistent, zk.Ephemeral, zk.Sequential, zk.Container, zk.TTL(time.Hour), zk.CreatorACL(), zk.ReadACL()}
	steps := []func(){
		func() { c.Create(ctx, path(), []byte("new"), kinds[r.IntN(len(kinds))]) },
		func() { c.Create(ctx, path(), nil) },
		func() { c.Set(ctx, path(), fmt.Append(nil, r.Int()), int32(r.IntN(4)-1)) },
		func() { c.Delete(ctx, path(), int32(r.IntN(4)-1)) },
		func() { c.Multi(ctx, zk.CreateOp(path(), []byte("multi")), zk.SetOp(path(), nil, -1)) },
		func() {
			c.Multi(ctx, zk.SetOp(path(), []byte("a"), -1), zk.DeleteOp(path(), -1), zk.CheckOp(path(), 0))
		},
		func() { c.Multi(ctx, zk.CheckOp(path(), -1), zk.SetOp(path(), []byte("b"), -1)) },
		func() { c.SetACL(ctx, path(), zk.OpenACL(), int32(r.IntN(3)-1)) },
		func() { c.Get(ctx, path()) }, func() { c.GetW(ctx, path()) }, func() { c.Exists(ctx, path()) }, func() { c.Children(ctx, path()) },
		func() { c.GetACL(ctx, path()) }, func() { c.CountDescendants(ctx, path()) }, func() { c.Ephemerals(ctx, "/") },
		func() { c.MultiRead(ctx, zk.GetOp(path()), zk.ChildrenOp(path())) },
		func() { c.WhoAmI(ctx) }, func() { c.Sync(ctx, path()) }, func() { c.Get(ctx, "/zookeeper/config") }, func() { c.Children(ctx, "/") },
	}
	for range shadowSteps {
		steps[r.IntN(len(steps))]()
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
}

// shadowGoZK uses the operations of go-zookeeper.
func shadowGoZK(t *testing.T, addr string) {
	c := dial(t, addr)
	defer c.Close()
	if err := c.AddAuth("digest", []byte("go:pw")); err != nil {
		t.Error(err)
	}
	for i := range 50 {
		at := fmt.Sprintf("/gozk-%d", i)
		c.Create(at, []byte("x"), 0, gozk.AuthACL(gozk.PermAll))
		c.CreateContainer(at+"/c", nil, gozk.FlagContainer, world)
		c.CreateTTL(at+"/t", nil, gozk.FlagTTL, world, time.Hour)
		c.Children(at)
		c.ExistsW(at + "/none")
		c.Get(at)
		c.GetACL(at)
		c.Multi(&gozk.CreateRequest{Path: at + "/m", Acl: world}, &gozk.SetDataRequest{Path: at, Data: []byte("y"), Version: -1})
		c.Set(at, nil, 7)
		c.Delete(at, -1)
	}
}

// statOffsets are the places of a stat's fields, from the end of a reply, behind the last byte of each.
var statOffsets = map[string]int{"czxid": 60, "mzxid": 52, "ctime": 44, "mtime": 36, "version": 32, "cversion": 28, "aversion": 24,
	"ephemeralOwner": 16, "dataLength": 12, "numChildren": 8, "pzxid": 0, "data": 68}

// TestShadowFindsWrongAnswers puts a proxy that changes answers before the observer. Each wrong field must be
// found, and an error in place of an answer.
func TestShadowFindsWrongAnswers(t *testing.T) {
	t.Parallel()
	s := shadowEnsemble(t)
	liar := &lying{to: s.observer}
	run := s.run(t, liar.listen(t), s.e.Servers[:3]...)
	ctx, cancel := context.WithTimeout(t.Context(), shadowTimeout)
	defer cancel()
	c, err := zk.Connect(ctx, run.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, _, err := c.Create(ctx, "/lie", []byte("truth")); err != nil {
		t.Fatal(err)
	}
	await := func(field string) {
		for {
			for _, d := range run.Report().Differences {
				if d.Field == field && d.Path == "/lie" {
					return
				}
			}
			if _, _, err := c.Get(ctx, "/lie"); err != nil {
				t.Fatalf("a wrong %s was not found: %v", field, err)
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(statOffsets)) {
		liar.how.Store(int64(statOffsets[field]))
		await(field)
	}
	liar.how.Store(lieError)
	await("error")
}

const lieError = -1

// lying is a proxy to an observer that changes one byte of answers about znodes.
type lying struct {
	to  string
	how atomic.Int64 // the place of the byte from the end; lieError: the error code

	events atomic.Int64 // what happens to watch events
}

// The lies about watch events.
const (
	lieNone int64 = iota
	lieDrop
	lieType
	liePath
	lieLate // after the next answer
)

func (l *lying) listen(t *testing.T) string {
	t.Helper()
	l.how.Store(1 << 20) // beyond every answer
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			go l.serve(conn)
		}
	}()
	return listen.Addr().String()
}

func (l *lying) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer server.Close()
	go io.Copy(server, client) // ends with the connection
	var late []byte
	for {
		b, err := wire.ReadFrame(server, nil, wire.FrameMax)
		if err != nil {
			return
		}
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
		if isEvent := int32(binary.BigEndian.Uint32(b)) == wire.XidEvent; !isEvent {
			l.change(b)
			frame, late = slices.Concat(frame, b, late), nil
		} else if l.changeEvent(b) {
			frame = append(frame, b...)
		} else {
			if l.events.Load() == lieLate {
				late = slices.Concat(late, frame, b)
			}
			continue
		}
		if _, err := client.Write(frame); err != nil {
			return
		}
	}
}

// changeEvent changes a watch event. It returns false if the event must not be sent now.
func (l *lying) changeEvent(b []byte) bool {
	switch l.events.Load() {
	case lieDrop, lieLate:
		return false
	case lieType:
		b[wire.ReplyHeaderLen+3] = b[wire.ReplyHeaderLen+3]%4 + 1
	case liePath:
		b[len(b)-1] ^= 1
	}
	return true
}

// change changes an answer that has a stat.
func (l *lying) change(b []byte) {
	const statLen = 68
	how := l.how.Load()
	at := len(b) - 1 - int(how)
	if how == lieError {
		at = wire.ReplyHeaderLen - 1
	}
	if len(b) < wire.ReplyHeaderLen+statLen || at < wire.ReplyHeaderLen-1 || at >= len(b) {
		return
	}
	if how == lieError {
		copy(b[wire.ReplyHeaderLen-4:], []byte{0xff, 0xff, 0xff, 0x9b}) // NoNode
	} else {
		b[at]--
	}
}
