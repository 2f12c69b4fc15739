package peer

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// links starts the links of one server.
func (l *loopbackNet) links(id int, change ...func(*Options)) (*Links, *sink) {
	l.t.Helper()
	s := newSink()
	o := l.options(id, s)
	for _, f := range change {
		f(&o)
	}
	k := NewLinks(o)
	l.t.Cleanup(k.CloseAll)
	return k, s
}

func packet(kind peerwire.PacketType, z wire.Zxid, data []byte) *peerwire.QuorumPacket {
	return &peerwire.QuorumPacket{Type: kind, Zxid: z, Data: data}
}

// received waits until a link has received n packets, and returns them.
func received(t *testing.T, s *sink, n int) []*peerwire.QuorumPacket {
	t.Helper()
	var all []*peerwire.QuorumPacket
	for len(all) < n {
		all = append(all, await[Received](t, s, nil).Packets...)
	}
	return all
}

// pair links learner 1 to leader 2.
func pair(t *testing.T, leader, learner func(*Options)) (l2, l1 *Links, s2, s1 *sink, at2, at1 peerwire.LinkID) {
	t.Helper()
	l := newLAN(t, 2, 0)
	l2, s2 = l.links(2, leader)
	l1, s1 = l.links(1, learner)
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	l1.Dial(2)
	at1 = await[Linked](t, s1, nil).Link
	l1.Send(at1, packet(peerwire.PacketFollowerInfo, 0, []byte("hello")))
	at2 = await[Opened](t, s2, nil).Link
	if p := received(t, s2, 1)[0]; string(p.Data) != "hello" {
		t.Fatalf("%+v", p)
	}
	return
}

func plain(*Options) {}

// TestPacketsArriveInOrder: packets arrive completely and in order, also when many are sent at a time.
func TestPacketsArriveInOrder(t *testing.T) {
	l2, l1, s2, s1, at2, at1 := pair(t, plain, plain)
	const n = 5000
	for i := range n {
		p := packet(peerwire.PacketProposal, wire.Zxid(i), bytes.Repeat([]byte{byte(i)}, i%300))
		if i%1000 == 999 {
			p.Data = bytes.Repeat([]byte{7}, 1<<20)
		}
		l2.Send(at2, p)
	}
	for i, p := range received(t, s1, n) {
		want := i % 300
		if i%1000 == 999 {
			want = 1 << 20
		}
		if p.Zxid != wire.Zxid(i) || len(p.Data) != want {
			t.Fatalf("packet %d is %v with %d bytes", i, p.Zxid, len(p.Data))
		}
	}
	request := packet(peerwire.PacketRequest, -1, nil)
	request.Auth = []wire.ID{{Scheme: "ip", ID: "127.0.0.1"}}
	l1.Send(at1, request)
	if p := received(t, s2, 1)[0]; p.Data != nil || len(p.Auth) != 1 || p.Auth[0] != request.Auth[0] {
		t.Errorf("%+v", p)
	}
}

// TestPacketsAreBatched: packets that have arrived together are passed on together, and each owns its memory.
func TestPacketsAreBatched(t *testing.T) {
	l := newLAN(t, 2, 0)
	l2, s2 := l.links(2)
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	f := rawDial(t, l.quorum(2))
	var b []byte
	for i := range 100 {
		b = wire.Append(b, packet(peerwire.PacketAck, wire.Zxid(i), []byte{byte(i)}))
	}
	f.send(b)
	first := await[Received](t, s2, nil)
	if len(first.Packets) < 2 {
		t.Errorf("%d packets in the first batch", len(first.Packets))
	}
	all := first.Packets
	if more := 100 - len(all); more > 0 {
		all = append(all, received(t, s2, more)...)
	}
	f.send(b)
	received(t, s2, 100)
	for i, p := range all {
		if p.Zxid != wire.Zxid(i) || p.Data[0] != byte(i) {
			t.Fatalf("packet %d was overwritten: %+v", i, p)
		}
	}
}

// TestLearnerDialsUntilTheLeaderListens: a learner dials until the leader listens or StopDialling is
// called. A leader that has stopped listening refuses new links, and keeps the existing ones.
func TestLearnerDialsUntilTheLeaderListens(t *testing.T) {
	l := newLAN(t, 3, 0)
	l.free(l.quorum(2))
	l.free(l.quorum(3))
	l1, s1 := l.links(1)
	l2, s2 := l.links(2)
	l1.Dial(3)
	refused := func() int64 { return l1.Figures().DialFailures.Value() }
	for _, leader := range []ensemble.ServerID{3, 2} {
		began, before := time.Now(), refused()
		l1.Dial(leader)
		eventually(t, "eager refusals", func() bool { return time.Since(began) > learnerEager && refused() > before })
		before = refused()
		eventually(t, "patient refusals", func() bool { return refused() > before+3 })
	}
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	linked := await[Linked](t, s1, nil)
	if linked.Server != 2 || linked.Link == 0 {
		t.Errorf("%+v", linked)
	}
	l2.Unlisten()
	if c, err := net.Dial("tcp", l.quorum(2)); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
	l1.Send(linked.Link, packet(peerwire.PacketAck, 1, nil))
	eventually(t, "either", func() bool { return len(s2.list())+len(s1.list()) > 0 })

	l3, s3 := l.links(3)
	l3.Dial(2)
	eventually(t, "refusals", func() bool { return l3.Figures().DialFailures.Value() > 3 })
	l3.StopDialling()
	if err := l2.Listen(); err != nil { // again, on the same port
		t.Fatal(err)
	}
	l3.Dial(2)
	await[Linked](t, s3, nil)
}

// TestSnapshotKeepsItsPlaceAmongPackets: a snapshot is sent directly after its SNAP packet, between
// the packets that were queued before and after it. The learner receives reports of the progress,
// and then the packet. Packets behind the snapshot go through WithoutDigest, up to the last one that it may contain.
func TestSnapshotKeepsItsPlaceAmongPackets(t *testing.T) {
	chunk := bytes.Repeat([]byte("snapshot"), 1<<10)
	const chunks = 200
	read := func(o *Options) {
		o.ReadSnapshot = func(_ peerwire.LinkID, p *peerwire.QuorumPacket, r *bufio.Reader) error {
			if p.Zxid != 9 {
				return errors.New("another packet")
			}
			got := make([]byte, len(chunk))
			for range chunks {
				if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, chunk) {
					return errors.New("another snapshot")
				}
			}
			return nil
		}
	}
	strips := func(o *Options) {
		o.WithoutDigest = func(p *peerwire.QuorumPacket) *peerwire.QuorumPacket {
			return packet(p.Type, p.Zxid, []byte("stripped"))
		}
	}
	l2, _, _, s1, at2, _ := pair(t, strips, read)
	l2.Send(at2, packet(peerwire.PacketLeaderInfo, 1, nil))
	l2.SendSnapshot(at2, packet(peerwire.PacketSnap, 9, nil), func(w io.Writer) (wire.Zxid, error) {
		for range chunks {
			if _, err := w.Write(chunk); err != nil {
				return 0, err
			}
		}
		return 11, nil
	})
	for z := wire.Zxid(10); z <= 12; z++ {
		l2.Send(at2, packet(peerwire.PacketProposal, z, []byte("whole")))
	}
	if p := received(t, s1, 1); p[0].Type != peerwire.PacketLeaderInfo {
		t.Fatalf("%+v", p[0])
	}
	await[Progress](t, s1, nil)
	var got []string
	for _, p := range received(t, s1, 4) {
		got = append(got, fmt.Sprintf("%v %d %s", p.Type, uint64(p.Zxid), p.Data))
	}
	if want := []string{"SNAP 9 ", "PROPOSAL 10 stripped", "PROPOSAL 11 stripped", "PROPOSAL 12 whole"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestFailedSnapshotsEndTheLink: a snapshot that cannot be read or written, or that a
// learner sends, ends the link.
func TestFailedSnapshotsEndTheLink(t *testing.T) {
	bad := func(o *Options) {
		o.ReadSnapshot = func(peerwire.LinkID, *peerwire.QuorumPacket, *bufio.Reader) error { return errors.New("no room") }
	}
	l2, _, s2, s1, at2, _ := pair(t, plain, bad)
	l2.SendSnapshot(at2, packet(peerwire.PacketSnap, 9, nil), func(w io.Writer) (wire.Zxid, error) { _, err := w.Write([]byte("x")); return 0, err })
	if c := await[Closed](t, s1, nil); !strings.Contains(c.Why, "no room") {
		t.Error(c.Why)
	}
	await[Closed](t, s2, nil)

	waits := func(o *Options) {
		o.ReadSnapshot = func(_ peerwire.LinkID, _ *peerwire.QuorumPacket, r *bufio.Reader) error {
			_, err := r.ReadByte()
			return err
		}
	}
	l2, l1, s2, s1, at2, at1 := pair(t, plain, waits)
	l2.SendSnapshot(at2, packet(peerwire.PacketSnap, 9, nil), func(io.Writer) (wire.Zxid, error) { return 0, errors.New("disk") })
	if c := await[Closed](t, s2, nil); !strings.Contains(c.Why, "disk") {
		t.Error(c.Why)
	}
	await[Closed](t, s1, nil)
	l1.Send(at1, packet(peerwire.PacketAck, 1, nil)) // the link has ended, so this has no effect

	_, l1, s2, _, _, at1 = pair(t, bad, plain)
	l1.Send(at1, packet(peerwire.PacketSnap, 1, nil))
	if c := await[Closed](t, s2, nil); !strings.Contains(c.Why, "does not accept one") {
		t.Error(c.Why)
	}
}

// TestCloseFlushes: Close first sends what is queued. Both ends report the end of the link once.
func TestCloseFlushes(t *testing.T) {
	l2, _, s2, s1, at2, _ := pair(t, func(o *Options) { o.FlushTimeout = eventTimeout }, plain)
	for i := range 1000 {
		l2.Send(at2, packet(peerwire.PacketCommit, wire.Zxid(i), make([]byte, 1000)))
	}
	l2.Close(at2)
	l2.Send(at2, packet(peerwire.PacketPing, 0, nil)) // comes too late
	if all := received(t, s1, 1000); all[999].Zxid != 999 {
		t.Errorf("%v came last", all[999].Zxid)
	}
	if c := await[Closed](t, s1, nil); c.Why != "the other side closed the connection" {
		t.Error(c.Why)
	}
	if c := await[Closed](t, s2, nil); c.Why != "this server closed the connection" {
		t.Error(c.Why)
	}
}

// TestSlowLearnerIsCutOff: a learner that does not read is cut off, either because its queue is full or
// because a write takes too long. Other links are not affected.
func TestSlowLearnerIsCutOff(t *testing.T) {
	l := newLAN(t, 2, 0)
	l2, s2 := l.links(2, func(o *Options) { o.QueueMax = 32 << 20; o.FlushTimeout = 50 * time.Millisecond })
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	hello := wire.Append(nil, packet(peerwire.PacketFollowerInfo, 0, nil))
	slow, other, stuck := rawDial(t, l.quorum(2)), rawDial(t, l.quorum(2)), rawDial(t, l.quorum(2))
	var ids []peerwire.LinkID
	for _, f := range []*fake{slow, other, stuck} {
		f.send(hello)
		ids = append(ids, await[Opened](t, s2, nil).Link)
	}
	big := packet(peerwire.PacketProposal, 1, make([]byte, 1<<20))
	for range 24 {
		l2.Send(ids[2], big)
	}
	l2.Close(ids[2])
	await(t, s2, func(c Closed) bool { return c.Link == ids[2] })
	for range 64 {
		l2.Send(ids[0], big)
	}
	if c := await[Closed](t, s2, nil); c.Link != ids[0] || !strings.Contains(c.Why, "wait to be sent") {
		t.Errorf("%+v", c)
	}
	l2.Send(ids[1], packet(peerwire.PacketPing, 5, nil))
	var p peerwire.QuorumPacket
	if err := peerwire.ReadPacket(bufio.NewReader(other), &p, peerwire.PacketMax); err != nil || p.Zxid != 5 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestStrangeLearnersEndAlone: bytes that are not a packet end their own link, and are logged once for
// each address. A connection that sends nothing does not become a link.
func TestStrangeLearnersEndAlone(t *testing.T) {
	l := newLAN(t, 2, 0)
	log, lines := logLines()
	l2, s2 := l.links(2, func(o *Options) { o.Log = log })
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	good := rawDial(t, l.quorum(2))
	good.send(wire.Append(nil, packet(peerwire.PacketAck, 1, nil)))
	received(t, s2, 1)
	for range handshakesMax + 5 {
		rawDial(t, l.quorum(2))
	}
	for range 3 {
		f := rawDial(t, l.quorum(2))
		f.send([]byte(strings.Repeat("\x7f", 200)))
		await[Closed](t, s2, nil)
	}
	good.send(wire.Append(nil, packet(peerwire.PacketAck, 2, nil)))
	received(t, s2, 1)
	if n := strings.Count(lines(), "bytes that are not a packet"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, lines())
	}
}

// TestRecordedPacketsPass: the packets that ZooKeeper servers sent are received without a
// change.
func TestRecordedPacketsPass(t *testing.T) {
	l := newLAN(t, 2, 0)
	l2, s2 := l.links(2)
	if err := l2.Listen(); err != nil {
		t.Fatal(err)
	}
	var stream []byte
	var want []string
	for _, v := range zabVectors(t) {
		b, err := hex.DecodeString(v.Hex)
		var p peerwire.QuorumPacket
		if err != nil || wire.Decode(b, &p) != nil || p.Type == peerwire.PacketSnap || !bytes.Equal(wire.Append(nil, &p), b) {
			continue // not a packet, or a packet that a snapshot follows
		}
		stream = append(stream, b...)
		want = append(want, v.Hex)
	}
	if len(want) < 100 {
		t.Fatalf("only %d packets", len(want))
	}
	f := rawDial(t, l.quorum(2))
	f.send(stream)
	for i, p := range received(t, s2, len(want)) {
		if got := hex.EncodeToString(wire.Append(nil, p)); got != want[i] {
			t.Fatalf("%s arrived as %s", want[i], got)
		}
	}
}
