package replica

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// ensembleStage plays the transcripts of ensembles, testdata/ensemble-*.txt. It prints what the servers send, what they ask of their
// disks, what their clients get, and what their operators are told. Each line begins with the time in ms and the server.
type ensembleStage struct {
	*cluster
	t       *testing.T
	out     *bytes.Buffer
	began   int64
	conns   map[string]ConnID
	clients map[string]*client
	names   map[ConnID]string
	shown   map[string]bool    // by kind of line
	only    []*server          // whose lines are printed; nil: of all
	was     map[*server]string // what was printed last about a server's role
}

func newEnsembleStage(t *testing.T, out *bytes.Buffer) *ensembleStage {
	return &ensembleStage{t: t, out: out, conns: map[string]ConnID{}, clients: map[string]*client{}, names: map[ConnID]string{}, was: map[*server]string{},
		shown: map[string]bool{}}
}

// kinds are the kinds of lines: what the operator is told, changes of the role, duties of the disk, notifications, the packets of learners and
// their leaders except pings, those with pings, and what clients get.
var kinds = []string{"log", "role", "disk", "votes", "packets", "pings", "clients"}

// servers makes an ensemble of n voters, none of which runs yet: servers N [observers N] [flag yes]... [compatible 1,2] [priorities 1:7,2:5].
func (s *ensembleStage) servers(n int64, opt map[string]string) {
	var text strings.Builder
	for id := int64(1); id <= n+number(opt["observers"]); id++ {
		role := "participant"
		if id > n {
			role = "observer"
		}
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:%s\n", id, 1000+id, 2000+id, role)
	}
	h := emptyCluster(s.t, opt["drops"] == "", text.String())
	h.reads, h.masters, h.local, h.reconfig = opt["reads"] != "", opt["masters"] != "", opt["local"] != "", opt["reconfig"] != ""
	h.guarded = opt["guarded"] != ""
	if opt["containers"] != "" {
		h.containerCheckMS = 1000
	}
	h.compatible, h.priorities = map[ensemble.ServerID]bool{}, map[ensemble.ServerID]int{}
	for _, id := range ids(opt["compatible"]) {
		h.compatible[id] = true
	}
	for part := range strings.SplitSeq(opt["priorities"], ",") {
		if id, priority, ok := strings.Cut(part, ":"); ok {
			h.priorities[ensemble.ServerID(number(id))] = int(number(priority))
		}
	}
	h.silent, h.told, h.effected = map[*server]bool{}, s.tell, s.effect
	s.cluster, s.began = h, h.now.Mono
	for id := int64(1); id <= n+number(opt["observers"]); id++ {
		h.add(ensemble.ServerID(id))
	}
}

// ids reads server ids between commas; "all" is no id.
func ids(text string) (all []ensemble.ServerID) {
	for part := range strings.SplitSeq(text, ",") {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			all = append(all, ensemble.ServerID(n))
		}
	}
	return all
}

// chosen returns the servers with these ids, or all of them.
func (s *ensembleStage) chosen(text string) (all []*server) {
	if text == "all" {
		return s.cluster.servers
	}
	for _, id := range ids(text) {
		all = append(all, s.server(id))
	}
	return all
}

// command carries out a command. Servers are given by their ids, and clients by names.
func (s *ensembleStage) command(w []string) {
	give := func(events ...Event) {
		for _, o := range s.chosen(w[1]) {
			o.inbox = append(o.inbox, events...)
		}
	}
	switch w[0] {
	case "servers":
		s.servers(number(w[1]), pairs(w[2:]))
	case "run": // run MS
		s.run(number(w[1]))
	case "start": // start IDS
		for _, o := range s.chosen(w[1]) {
			s.start(o)
			s.was[o] = ""
		}
	case "kill":
		for _, o := range s.chosen(w[1]) {
			s.kill(o)
		}
	case "wipe":
		for _, o := range s.chosen(w[1]) {
			o.wipe()
		}
	case "promised": // promised ID EPOCH: what the disk of a server that does not run has as accepted epoch
		s.chosen(w[1])[0].acc = wire.Epoch(number(w[2]))
	case "show", "hide": // show KINDS, hide all
		named := w[1:]
		if named[0] == "all" {
			named = kinds
		}
		for _, kind := range named {
			if !slices.Contains(kinds, kind) {
				s.t.Fatal("no such kind of line: ", kind)
			}
			s.shown[kind] = w[0] == "show"
		}
	case "only": // only IDS: lines of these servers
		s.only = s.chosen(w[1])
	case "cut": // cut A B: all links between them
		a, b := s.chosen(w[1])[0], s.chosen(w[2])[0]
		for _, id := range slices.Sorted(maps.Keys(s.links)) {
			if l := s.links[id]; l.from == a && l.to == b || l.from == b && l.to == a {
				s.breakLink(id)
			}
		}
	case "remote": // remote IDS: no dial to them succeeds
		s.remote = s.chosen(w[1])
	case "relays": // relays N: the next links end at once
		s.relays = int(number(w[1]))
	case "hold": // hold FROM TO: the packets of a learner to its leader, or to a learner, until release
		s.delay = s.between(s.chosen(w[1])[0], s.chosen(w[2])[0])
	case "release":
		s.release()
	case "silence": // silence IDS: their disks answer nothing until answer
		for _, o := range s.chosen(w[1]) {
			s.silent[o] = true
		}
	case "stalled": // stalled IDS: the driver says that the disk has not answered for a second
		give(DiskStalled{Since: s.now.Mono - 1000, Duty: "fsync of log.1"})
	case "answer":
		s.answer(s.chosen(w[1])[0])
	case "full":
		for _, o := range s.chosen(w[1]) {
			z, gen := o.r.member.log.Last(), o.r.member.generation
			o.inbox = append(o.inbox, LogFull{z, gen}, Zab{zab.Refused{Zxid: z, Generation: gen, Why: "no space"}})
		}
	case "free":
		give(LogFree{})
	case "noroom":
		give(NoRoom{})
	case "room":
		give(Room{})
	case "spoil": // spoil IDS PATH: the znode has other data in their memory
		for _, o := range s.chosen(w[1]) {
			o.spoil(w[2])
		}
	case "pause": // pause MS: no process runs for a while
		s.now.Mono, s.now.Wall = s.now.Mono+number(w[1]), s.now.Wall+number(w[1])
	case "suspend": // suspend MS: the machines do not run for a while, and their monotonic clocks stand
		s.now.Wall += number(w[1])
	case "earlier": // earlier IDS MS: their ticks come so much earlier than those of the others
		for _, o := range s.chosen(w[1]) {
			o.tickAfter = number(w[2])
		}
	case "reports": // reports IDS: they report requests whose connections have ended
		for _, o := range s.chosen(w[1]) {
			o.r.opt.ReportAbandoned = true
		}
	case "state": // state IDS: what these servers say when they are asked
		for _, o := range s.chosen(w[1]) {
			s.state(o)
		}
	case "transfer": // transfer FROM TO [leaving]
		give(TransferLeadership{To: ensemble.ServerID(number(w[2])), Leaving: len(w) > 3})
	default:
		s.ofClient(w)
	}
	if s.cluster != nil && w[0] != "servers" {
		s.run(0)
	}
}

// between is like packets, in either direction.
func (s *ensembleStage) between(from, to *server) func(*server, Event) bool {
	return func(at *server, e Event) bool {
		z, ok := e.(Zab)
		if !ok || at != to {
			return false
		}
		r, ok := z.Event.(zab.Received)
		l := s.links[r.Link]
		return ok && l != nil && (l.from == from || l.to == from)
	}
}

// ofClient carries out a command about a client.
func (s *ensembleStage) ofClient(w []string) {
	switch w[0] {
	case "connect": // connect NAME ID [session OTHER] [timeout MS] [accepts readonly] [password bad] [seen ZXID]
		s.connectAs(w[1], s.chosen(w[2])[0], pairs(w[3:]))
	case "request": // request NAME XID OP [PATH [DATA]]
		q := requestOf(s.t, s.conns[w[1]], w[2:])
		c := s.clients[w[1]]
		c.at.inbox = append(c.at.inbox, q)
	case "leave": // leave NAME: the client ends its connection
		c := s.clients[w[1]]
		c.at.inbox = append(c.at.inbox, Disconnected{s.conns[w[1]]})
		delete(s.cluster.clients, s.conns[w[1]])
	case "touch": // touch NAMES
		for _, name := range w[1:] {
			c := s.clients[name]
			c.at.inbox = append(c.at.inbox, Touched{Sessions: []Touch{{c.session, s.now.Mono}}})
		}
	case "expire": // expire NAME ID: before its time
		at := s.chosen(w[2])[0]
		at.inbox = append(at.inbox, Expire{s.clients[w[1]].session})
	default:
		s.t.Fatal("no such command: ", w)
	}
}

func (s *ensembleStage) connectAs(name string, at *server, opt map[string]string) {
	s.cluster.conns++
	id := s.cluster.conns
	c := &client{at: at}
	s.cluster.clients[id], s.clients[name], s.conns[name], s.names[id] = c, c, id, name
	e := Connect{Conn: id, TimeoutMS: 6000, ReadOnly: opt["accepts"] == "readonly", Seen: wire.Zxid(number(opt["seen"]))}
	if ms := number(opt["timeout"]); ms > 0 {
		e.TimeoutMS = int32(ms)
	}
	if of := opt["session"]; of != "" {
		e.Session = s.clients[of].session
		pw := e.Session.Password()
		e.Password = pw[:]
	}
	if opt["password"] == "bad" {
		e.Password = []byte("wrong")
	}
	at.inbox = append(at.inbox, e)
}

// print prints a line about a server.
func (s *ensembleStage) print(o *server, format string, values ...any) {
	if s.only != nil && !slices.Contains(s.only, o) {
		return
	}
	fmt.Fprintf(s.out, "%7d %d: %s\n", s.now.Mono-s.began, o.id, fmt.Sprintf(format, values...))
}

// tell prints what a server wants to be done.
func (s *ensembleStage) tell(o *server, rd Ready) {
	if s.shown["log"] {
		for _, h := range rd.Observations {
			s.print(o, "log: %v", h)
		}
	}
	if s.shown["disk"] {
		for _, d := range rd.Duties {
			s.print(o, "disk: %s", dutyText(d))
		}
	}
	if s.shown["votes"] {
		for _, m := range rd.Votes {
			n := m.Notification
			s.print(o, "votes to %d: %v, for %s, zxid %v, epoch %d, round %d", m.To, n.State, named(n.Leader), n.Zxid, n.PeerEpoch, n.ElectionEpoch)
		}
	}
	for _, m := range rd.Send {
		l := s.links[m.Link]
		if l == nil || !s.shown["packets"] || m.Packet.Type == peerwire.PacketPing && !s.shown["pings"] {
			continue
		}
		to := l.to
		if to == o {
			to = l.from
		}
		snapshot := ""
		if m.Snapshot {
			snapshot = ", and a snapshot"
		}
		s.print(o, "to %d: %v %v, %d bytes%s", to.id, m.Packet.Type, m.Packet.Zxid, len(m.Packet.Data), snapshot)
	}
	for _, id := range rd.Close {
		if l := s.links[id]; l != nil && s.shown["packets"] {
			s.print(o, "closes the link from %d to %d", l.from.id, l.to.id)
		}
	}
	for range rd.ReadLog {
		s.print(o, "reads its log for a learner")
	}
	if rd.Members != nil && s.shown["disk"] {
		s.print(o, "members: %s", membersText(rd.Members))
	}
	if rd.Stop != "" {
		s.print(o, "stops: %s", rd.Stop)
	}
	s.role(o, rd)
}

// role prints what a server is, if that has changed.
func (s *ensembleStage) role(o *server, rd Ready) {
	st := o.r.Status()
	now := st.Role.String()
	if st.Serving {
		now += fmt.Sprintf(" %d, serves in epoch %d", st.Leader, st.Epoch)
	}
	if st.ReadOnly {
		now += ", read-only"
	}
	if st.Appointed {
		now += ", appointed"
	}
	for _, why := range []string{st.Disabled, st.Abstains, st.GivesWay, st.Differs, st.Unfit} {
		if why != "" {
			now += "; " + why
		}
	}
	if st.Prefers != peerwire.NoServer {
		now += fmt.Sprintf("; prefers %d after %d ms", st.Prefers, st.PrefersMS)
	}
	if rd.Dial != peerwire.NoServer {
		now += fmt.Sprintf("; dials %d", rd.Dial)
	}
	if rd.Listen || rd.ListenObservers {
		now += fmt.Sprintf("; listens: %v, for observers: %v", rd.Listen, rd.ListenObservers)
	}
	if now != s.was[o] && s.shown["role"] {
		s.print(o, "is %s", now)
	}
	s.was[o] = now
}

// state prints what a server says of itself.
func (s *ensembleStage) state(o *server) {
	if !o.up {
		fmt.Fprintf(s.out, "  %d is down\n", o.id)
		return
	}
	r := o.r
	st := r.Status()
	fmt.Fprintf(s.out, "  %d: %v, leader %s, learns from %s, epoch %d, applied %v, stranded: %v, cannot join: %v, syncs: %d\n",
		o.id, st.Role, named(st.Leader), named(st.Master), st.Epoch, r.Applied(), r.Stranded(), r.JoinFails(), r.PendingSyncs())
	for _, b := range r.Expiring() {
		fmt.Fprintf(s.out, "  %d: at %d expire %v\n", o.id, b.Deadline-s.began, b.Sessions)
	}
	for _, b := range r.ExpiringLocals() {
		fmt.Fprintf(s.out, "  %d: at %d expire the local sessions %v\n", o.id, b.Deadline-s.began, b.Sessions)
	}
	for _, l := range r.Learners() {
		fmt.Fprintf(s.out, "  %d: learner %d, observes: %v, synchronised: %v, native: %v, unfit: %q, has %v, heard %d ms ago\n",
			o.id, l.Server, l.Observer, l.Synced, l.Native, l.Unfit, l.Acked, l.HeardMS)
	}
	s.remembered(o)
	for _, e := range r.Elections() {
		fmt.Fprintf(s.out, "  %d: %v\n", o.id, &e)
		for line := range strings.Lines(e.Explain()) {
			fmt.Fprintf(s.out, "       %s", strings.TrimRight(line, "\n")+"\n")
		}
	}
}

// remembered prints what a server remembers that can change what it does later.
func (s *ensembleStage) remembered(o *server) {
	r, m := o.r, o.r.member
	for _, x := range []struct {
		what string
		v    any
		none bool
	}{
		{"failed terms", m.failed, len(m.failed) == 0},
		{"its health", r.health, reflect.ValueOf(r.health).IsZero()},
		{"preferred servers", m.preference, len(m.preference.failed)+len(m.preference.avoid) == 0},
		{"observer masters", m.masters, !m.usesMasters() && len(m.masters.down) == 0},
		{"trees", r.differs, false},
		{"read-only service", m.readers, false},
		{"a stall", r.stall, !r.stall.active()},
		{"sessions that end", r.ending, len(r.ending) == 0},
	} {
		if !x.none {
			fmt.Fprintf(s.out, "  %d: of %s: %+v\n", o.id, x.what, x.v)
		}
	}
	fmt.Fprintf(s.out, "  %d: epochs: accepted %d, current %d, on disk %+v; of a ZooKeeper leader: %d; rejoined: %v, told the leader: %q, its tree: %+v\n",
		o.id, m.accepted, m.current, m.saved, m.compatible, m.rejoined, m.told, m.toldTree)
}

func named(id ensemble.ServerID) string {
	if id == peerwire.NoServer {
		return "nobody"
	}
	return fmt.Sprint(id)
}

func dutyText(d Duty) string {
	var all []string
	add := func(format string, values ...any) { all = append(all, fmt.Sprintf(format, values...)) }
	if d.SaveAccepted != 0 {
		add("accepted epoch %d", d.SaveAccepted)
	}
	if d.Truncate != nil {
		add("truncate to %v", d.Truncate.Zxid)
	}
	if d.Rebuild {
		add("rebuild the tree")
	}
	if d.Install != nil {
		add("install the snapshot %v with %d transactions", d.Install.Zxid, len(d.Install.Txns))
	}
	if d.Proposed != nil {
		add("proposed %s", strings.ReplaceAll(strings.TrimSpace(d.Proposed.String()), "\n", " "))
	}
	for _, txn := range d.Append {
		add("append %v %v", txn.Zxid, txn.Type)
	}
	if d.Sync {
		add("sync")
	}
	if d.SaveCurrent != 0 {
		add("current epoch %d", d.SaveCurrent)
	}
	if d.Committed != nil {
		add("committed %s", membersText(d.Committed))
	}
	return strings.Join(all, ", ") + fmt.Sprintf(" (generation %d)", d.Generation)
}

func membersText(m *Memberships) string {
	text := fmt.Sprintf("voters %v", m.Committed.Voters())
	if m.Proposed != nil {
		text += fmt.Sprintf(", proposed %v", m.Proposed.Voters())
	}
	return text
}

// effect prints what a client gets.
func (s *ensembleStage) effect(o *server, out Output) {
	name := s.names[out.Conn]
	if name == "" || !s.shown["clients"] {
		return
	}
	switch out.Kind {
	case Attached:
		how := fmt.Sprintf("has session %v for %d ms", out.Session, out.TimeoutMS)
		if out.Session == 0 {
			how = "is refused"
		}
		if out.ReadOnly {
			how += ", read-only"
		}
		s.print(o, "client %s %s", name, how)
	case Reply:
		s.print(o, "client %s: reply %d, zxid %v: %v", name, out.Header.Xid, out.Header.Zxid, out.Header.Err)
	case Turn:
		s.print(o, "client %s: may read, %d %v, tree at %v", name, out.Request.Xid, out.Request.Op, o.r.tree.LastZxid())
	case Close:
		s.print(o, "client %s: closed", name)
	}
}
