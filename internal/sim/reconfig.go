package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/wire"
)

// With Options.Reconfig clients change the membership while servers run. Each server keeps
// its membership in files, as a real one does. The newest list of the roster is then the
// newest membership that some server knows to be committed.

// staticFile is the static configuration file on the disk of a server.
const staticFile = "/etc/zoo.cfg"

func (v *server) memberFiles() *store.MemberFiles {
	return &store.MemberFiles{FS: v.fs, Static: staticFile, Next: ensemble.NextFileName(staticFile)}
}

// loadMembers reads the membership from the files. A disk without them gets the list that
// the operator has.
func (v *server) loadMembers() error {
	if v.sim.opt.Reconfig <= 0 {
		return nil
	}
	f := v.memberFiles()
	text, err := f.Read(staticFile)
	if errors.Is(err, fs.ErrNotExist) {
		v.members = v.members.WithVersion(0)
		return v.writeStatic(v.members.FileText(false))
	}
	if err != nil {
		return err
	}
	props, err := ensemble.ReadProperties(text)
	if err != nil {
		return err
	}
	version := int64(0)
	for _, p := range props {
		if p.Key == "dynamicConfigFile" {
			version = ensemble.FileVersion(p.Value)
			if text, err = f.Read(p.Value); err != nil {
				return err
			}
		}
	}
	m, err := ensemble.Parse(text)
	if err != nil {
		return err
	}
	v.members = v.sim.roster.learn(m.WithVersion(version))
	return nil
}

// writeStatic writes the first static file of a disk.
func (v *server) writeStatic(text string) error {
	if err := v.fs.MkdirAll("/etc"); err != nil {
		return err
	}
	f, err := v.fs.Create(staticFile + ".first")
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = v.fs.Rename(staticFile+".first", staticFile)
	}
	if err != nil {
		return err
	}
	return v.fs.SyncDir("/etc")
}

// saveMembers writes the files of a membership. A failure has no effect but that the files
// stay older, unless the power fails.
func (w *writer) saveMembers(a *driver.Action) error {
	f := w.v.memberFiles()
	var err error
	if a.Kind == driver.SaveProposed {
		err = f.SaveProposed(a.Proposed.FileText(true))
	} else {
		m := a.Committed.Committed
		path := m.FileName(staticFile)
		edit := func(static string) (string, error) { return ensemble.StaticText(static, path, true) }
		err = f.SaveCommitted(path, m.FileText(false), edit, a.Committed.Proposed != nil)
	}
	if errors.Is(err, store.ErrCrashed) {
		return err
	}
	if err != nil {
		w.v.sim.tell("server %d cannot write its membership: %v", w.v.id, err)
	}
	return nil
}

// learn records a committed membership, and returns the one that all servers share.
func (r *roster) learn(m *ensemble.Membership) *ensemble.Membership {
	switch {
	case m.Version() > r.newest.Version():
		r.newest = m
	case m.Version() == r.newest.Version() && m.String() == r.newest.String():
		return r.newest
	}
	return m
}

// counts records the memberships with which a server counts.
func (v *server) counts(m *replica.Memberships) {
	if m == nil {
		return
	}
	if v.sim.opt.Reconfig > 0 {
		v.members = v.sim.roster.learn(m.Committed)
	}
	if v.proposed = m.Proposed; v.proposed != nil {
		v.sim.reach(situationProposed)
	}
	v.sim.weigh()
	v.sim.see(check.Counts{Server: v.id, Committed: m.Committed, Proposed: m.Proposed})
}

// inDoubt reports whether nobody knows of some membership whether it is committed.
func (s *Sim) inDoubt() bool { return len(s.doubted()) > 0 }

// doubted returns the memberships in the logs of servers of which nobody knows whether they
// are committed. If the history goes on behind the place of one, that is known.
func (s *Sim) doubted() (all []*ensemble.Membership) {
	known := max(s.roster.newest.Version(), int64(s.history.Last().Zxid))
	for _, v := range s.servers {
		if v.proposed != nil && v.proposed.Version() > known {
			all = append(all, v.proposed)
		}
	}
	return all
}

// recruit adds a machine whose list names the present members and itself.
func (s *Sim) recruit(id int) {
	if s.opt.Reconfig <= 0 || id != len(s.servers)+1 || id > serversMax {
		return
	}
	text := s.roster.newest.FileText(false)
	m, err := ensemble.Parse(s.strip(text) + "\n" + s.line(id, votes, false))
	if err != nil {
		panic("sim: " + err.Error())
	}
	v := s.newServer()
	v.unknown, v.members = true, m
	s.reach(situationAdded)
	v.start()
}

// strip returns a list without its groups and weights, which could not name a new server.
func (s *Sim) strip(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "server.") }), "\n")
}

// line returns the line of a server. moved gives it another port for learners.
func (s *Sim) line(id int, p place, moved bool) string {
	port, role := 1000+id, "participant"
	if moved {
		port += 100
	}
	if p == observes {
		role = "observer"
	}
	return fmt.Sprintf("server.%d=127.0.0.1:%d:%d:%s;127.0.0.1:%d", id, port, 2000+id, role, 3000+id)
}

// The parts of the value of a reconfiguration.
const (
	placesCount  = 3
	secondPlace  = placesCount
	wholeChange  = placesCount * placesCount
	movedPort    = 2 * wholeChange
	reconfigMost = 2*movedPort - 1
)

// reconfigure lets a client ask for another membership: server A gets the place Value, and
// server B, if it is given, the place Value / secondPlace.
func (s *Sim) reconfigure(a Act) {
	c := s.someOperator()
	// Nobody makes an ensemble smaller while the disk of a server decays.
	if s.opt.Reconfig <= 0 || c == nil || slices.ContainsFunc(s.servers, func(v *server) bool { return v.rotten }) {
		return
	}
	value := int(a.Value)
	moves := map[int]place{a.A: place(value % placesCount)}
	if a.B > 0 {
		moves[a.B] = place(value / secondPlace % placesCount)
	}
	moved := value/movedPort%2 == 1
	q := wire.ReconfigRequest{ConfigID: -1}
	if value/wholeChange%2 == 1 {
		q.Members = wire.Text(s.wholeList(moves, moved))
	} else {
		q.Joining, q.Leaving = s.lists(moves, moved)
	}
	if s.random.Chance(30) {
		q.ConfigID = s.roster.newest.Version()
	}
	c.Send(&client.Call{Op: wire.OpReconfig, Path: configPath, Body: wire.Append(nil, &q)})
}

// configPath is the znode of the membership.
const configPath = "/zookeeper/config"

// someOperator draws a client that is connected; nil: there is none.
func (s *Sim) someOperator() *client.Client {
	for _, i := range s.random.Shuffled(len(s.clients.All)) {
		if c := s.clients.All[i]; c.Attached && !c.NoQuorum && !c.Hung {
			return c
		}
	}
	return nil
}

// lists returns an incremental change.
func (s *Sim) lists(moves map[int]place, moved bool) (joining, leaving wire.NullString) {
	var in, out []string
	for id := 1; id <= len(s.servers); id++ {
		switch p, there := moves[id]; {
		case !there:
		case p == absent:
			out = append(out, fmt.Sprint(id))
		default:
			in = append(in, s.line(id, p, moved))
		}
	}
	list := func(all []string) wire.NullString {
		return wire.NullString{String: strings.Join(all, ","), Valid: len(all) > 0}
	}
	return list(in), list(out)
}

// wholeList returns a whole new membership, in groups if the roster has groups. A voter of weight 0 keeps this
// weight. Otherwise a quorum of the new membership could need it while it has the newest history; but nobody
// elects it before that membership is committed, and nobody with less history can lead it.
func (s *Sim) wholeList(moves map[int]place, moved bool) string {
	var text bytes.Buffer
	groups, voters := make([]string, s.roster.groups), 0
	weights := ""
	for id := 1; id <= len(s.servers); id++ {
		line, votesNow, light := "", false, false
		if m, there := s.roster.newest.Server(ensemble.ServerID(id)); there {
			line, votesNow = m.Line(), m.Role == ensemble.Participant
			light = votesNow && s.roster.newest.Weight(m.ID) == 0
		}
		if p, there := moves[id]; there {
			if line, votesNow = s.line(id, p, moved), p == votes; p == absent {
				line = ""
			}
		}
		if line == "" {
			continue
		}
		fmt.Fprintln(&text, line)
		if votesNow && len(groups) > 0 {
			groups[voters%len(groups)] += fmt.Sprintf(":%d", id)
			voters++
			if light {
				weights += fmt.Sprintf("weight.%d=0\n", id)
			}
		}
	}
	for i, g := range groups {
		if g != "" {
			fmt.Fprintf(&text, "group.%d=%s\n", i+1, g[1:])
		}
	}
	return text.String() + weights
}

// reconfigure lets clients change the membership again and again, and adds machines.
func (n *nemesis) reconfigure(d *machine.Random) {
	n.sim.after(d.Between(50*machine.Millisecond, 2*machine.Second), func() {
		if n.sim.calm {
			return
		}
		s := n.sim
		switch {
		case s.leader() == nil && d.Chance(80): // nobody would carry it out
		case d.Chance(10) && len(s.servers) < serversMax:
			s.Do(Act{Kind: Recruit, A: len(s.servers) + 1})
		default:
			a := Act{Kind: Reconfigure, A: 1 + int(d.Below(int64(len(s.servers)))), Value: n.places(d)}
			if l := s.leader(); l != nil && d.Chance(25) {
				a.A = int(l.id)
			}
			if d.Chance(40) {
				a.B = 1 + int(d.Below(int64(len(s.servers))))
			}
			s.Do(a)
			if d.Chance(40) {
				n.later(d.Below(60*machine.Millisecond), func() { n.disturb(d) })
			}
		}
		n.reconfigure(d)
	})
}

// places draws the value of a reconfiguration. Below four voters it takes no vote away.
func (n *nemesis) places(d *machine.Random) int64 {
	draw := func() int64 {
		if len(n.sim.roster.newest.Voters()) <= votersMin || d.Chance(50) {
			return int64(votes)
		}
		return d.Below(placesCount)
	}
	v := draw() + secondPlace*draw()
	if n.sim.roster.groups > 0 || d.Chance(30) {
		v += wholeChange
	}
	if d.Chance(10) {
		v += movedPort
	}
	return v
}

// disturb causes a fault in the middle of a reconfiguration.
func (n *nemesis) disturb(d *machine.Random) {
	v := n.victim()
	long := d.Between(100*machine.Millisecond, 3*machine.Second)
	switch d.Below(5) {
	case 0:
		n.do(Act{Kind: Kill, A: int(v.id)}, long, Start)
	case 1:
		n.do(Act{Kind: PowerOff, A: int(v.id)}, long, Start)
	case 2:
		n.do(Act{Kind: CrashIn, A: int(v.id), Value: d.Between(1, 12)}, long, Start)
	case 3:
		n.isolate(v, long)
	case 4:
		n.endMost(true)
	}
}
