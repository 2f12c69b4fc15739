package sim

import (
	"errors"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
)

// Act is one fault, or the end of one.
type Act struct {
	At    int64 // µs
	Kind  Kind
	A, B  int   // servers by id; clients by their number, negated
	Value int64 // a further value, if the kind needs one
}

// Kind names a fault.
type Kind string

// The faults. The text after the semicolon names the machines that a kind uses. Where a
// kind uses two machines, B = 0 stands for all others.
const (
	Kill               Kind = "kill"          // the process ends, and that of a client is started again; A
	PowerOff           Kind = "power off"     // the machine loses power, and writes that were not fsynced are lost; no other machine is told; A
	CrashIn            Kind = "crash in"      // the power fails in the middle of the Value-th change of the disk; A
	Start              Kind = "start"         // the process starts; A
	Pause              Kind = "pause"         // the process is stopped; A
	Resume             Kind = "resume"        // the process goes on; A
	Suspend            Kind = "suspend"       // the machine is suspended, and its monotonic clock stands still; A
	Awake              Kind = "awake"         // the machine goes on; A
	Block              Kind = "block"         // packets from A to B do not arrive
	Cut                Kind = "cut"           // packets between A and B do not arrive
	Join               Kind = "join"          // packets between A and B arrive again
	Heal               Kind = "heal"          // all packets arrive again
	Slow               Kind = "slow"          // packets from A to B take Value µs longer
	Reset              Kind = "reset"         // connections between A and B break; A hears of it after Value µs, 0: soon
	SlowDisk           Kind = "slow disk"     // each action takes Value µs longer; A
	SlowSnapshot       Kind = "slow snapshot" // each piece of a snapshot that A sends takes Value µs longer
	HangDisk           Kind = "hang disk"     // the disk answers nothing, not even an error; A
	FreeDisk           Kind = "free disk"     // the disk answers again, including the calls made while it hung; A
	Filter             Kind = "filter"        // packets to (Value 1), from (2) or both (3) of the port for learners of A are dropped
	Unfilter           Kind = "unfilter"      // packets of the port for learners pass again; A
	SlowPort           Kind = "slow port"     // packets from the port for learners of A take Value µs longer
	FullDisk           Kind = "full disk"     // the disk of A has room for Value more bytes; -1: no limit
	Lie                Kind = "lie"           // each fsync reports success and makes nothing durable: a power failure loses everything from now on; A. With Value: only of logs (1), snapshots (2), epoch files (4) or a sum of these, and a power failure loses a part
	EndLie             Kind = "end lie"       // what was written reaches the disk, and so does what is fsynced from now on; A
	Rot                Kind = "rot"           // bit Value % 8 of byte Value / 8 of the snapshots and logs flips, if the others can do without A
	BadSector          Kind = "bad sector"    // the sector of byte Value / 8 of the snapshots and logs of A cannot be read any more
	RotEpoch           Kind = "rot epoch"     // currentEpoch (Value even) or acceptedEpoch (odd) decays, if the others can do without A: emptied (Value below 2), or bit Value / 2 - 1 flips
	FailSync           Kind = "fail sync"     // the Value-th fsync from now fails, and the next one succeeds; A
	FailWrite          Kind = "fail write"    // the Value-th call from now that changes the disk fails; A
	Wipe               Kind = "wipe"          // the disk is replaced by an empty one; A, which must be down
	LoseDisk           Kind = "lose disk"     // as wipe, but although the others cannot do without the disk, and the server starts as if for the first time; A, which must be down
	SetClock           Kind = "set wall"      // the wall clock jumps by Value µs; A
	Jump               Kind = "jump"          // the monotonic clock jumps forward by Value µs; A, which must not lead
	JumpAny            Kind = "jump any"      // as jump, also if A leads
	Hang               Kind = "hang"          // a client neither reads nor sends, and its connection stays; A
	Return             Kind = "return"        // a client that hung goes on with its session; A
	TransferLeadership Kind = "transfer"      // if A leads, it transfers leadership to B (0: to the most suitable server); Value 1: A is about to stop
	Enrol              Kind = "enrol"         // a new list of servers gives A, which may be new, the place Value
	MoveOver           Kind = "move over"     // the process ends, and uses the newest list from its next start on; A
	Recruit            Kind = "recruit"       // a new server starts with a list of the present members and itself; A, the number after the last one
	Reconfigure        Kind = "reconfigure"   // a client asks for A and B to get the places in Value, see reconfig.go
	RackOff            Kind = "rack off"      // the servers of rack A lose power in the same moment
	RackOn             Kind = "rack on"       // they start
	SwitchOff          Kind = "switch off"    // no packet passes to or from the servers and clients of rack A
	SwitchOn           Kind = "switch on"     // the packets pass again
	FullRack           Kind = "full rack"     // the disks of the servers of rack A have room for Value more bytes each; -1: no limit
	Calm               Kind = "calm"          // the faults have ended; A is 0
)

// errDisk is the error of a failing disk.
var errDisk = errors.New("input/output error")

// Do carries out an act now.
func (s *Sim) Do(a Act) {
	a.At = s.now
	if !a.toItself() {
		s.nemesis.done = append(s.nemesis.done, a)
	}
	s.tell("fault: %s", a.what())
	if a.A < 0 {
		if -a.A > len(s.clients.All) {
			return
		}
		clientFault(s.clients.All[-a.A-1], a)
		return
	}
	if a.Kind == Calm {
		return
	}
	if a.Kind == Enrol {
		s.enrol(a.A, place(a.Value))
		return
	}
	if a.Kind == Recruit {
		s.recruit(a.A)
		return
	}
	if a.Kind == Reconfigure {
		s.reconfigure(a)
		return
	}
	if s.doRack(a) {
		return
	}
	// Without the earlier act that would have added it, the server does not exist.
	if v := s.server(ensemble.ServerID(a.A)); v != nil && !s.doProcess(v, a) && !s.doDisk(v, a) {
		s.doNet(a)
	}
}

// doProcess carries out an act on a server's process or clock. It reports whether a is one.
func (s *Sim) doProcess(v *server, a Act) bool {
	switch a.Kind {
	case MoveOver:
		v.moveOver()
	case Kill:
		v.kill()
	case PowerOff:
		if v.On {
			v.powerOff()
		}
	case CrashIn:
		if v.up {
			v.fs.CrashAt(int(a.Value))
		}
	case Start:
		v.start()
	case Pause:
		v.pause()
	case Resume:
		if v.Clock.Slept < 0 {
			v.resume()
		}
	case Suspend:
		if v.up && v.Clock.Slept < 0 {
			v.Clock.Suspend(s.now)
			v.pause()
			v.suspended()
		}
	case Awake:
		v.wakeUp()
	case SetClock:
		switch {
		case a.Value < 0 && v.Clock.Slept >= 0:
			return true // a server cannot notice that it was suspended if its wall clock was set back meanwhile
		case a.Value < 0:
			s.reach(situationClockBack)
		case a.Value >= 3600*machine.Second:
			s.reach(situationClockAhead)
		}
		v.Clock.Offset += a.Value
	case Jump:
		v.jump(a.Value)
	case JumpAny:
		v.jumpAny(a.Value)
	case TransferLeadership:
		v.transferLeadership(a)
	default:
		return false
	}
	return true
}

// doDisk carries out an act on a server's disk or port. It reports whether a is one.
func (s *Sim) doDisk(v *server, a Act) bool {
	switch a.Kind {
	case SlowDisk:
		v.slowDisk = a.Value
	case HangDisk:
		v.hangDisk()
	case FreeDisk:
		v.freeDisk()
	case SlowSnapshot:
		v.slowSnap = a.Value
	case Filter:
		s.net.filter(&v.Host, a.Value)
	case Unfilter:
		s.net.filter(&v.Host, 0)
	case SlowPort:
		s.net.portLag[v.Place] = a.Value
	case FullDisk:
		v.space = a.Value
		v.restore()
	case Lie:
		v.lie(a.Value)
	case EndLie:
		v.endLie()
	case Rot, BadSector:
		v.decay(a)
	case RotEpoch:
		v.rotEpoch(a.Value)
	case FailSync:
		v.fs.Fail(store.OpSync, int(a.Value), errDisk)
	case FailWrite:
		v.fs.Fail(store.OpAny, int(a.Value), errDisk)
	case Wipe:
		v.wipe()
	case LoseDisk:
		v.loseDisk()
	default:
		return false
	}
	return true
}

// transferLeadership makes a leader transfer leadership, as far as it can.
func (v *server) transferLeadership(a Act) {
	to := peerwire.NoServer
	if a.B > 0 {
		to = ensemble.ServerID(a.B)
	}
	v.leaving = v.leaving || a.Value != 0 && v.up
	v.push(replica.TransferLeadership{To: to, Leaving: a.Value != 0})
}

// doNet carries out a fault of the network.
func (s *Sim) doNet(a Act) {
	n := &s.net
	if a.Kind == Heal {
		n.heal()
		return
	}
	if -a.B > len(s.clients.All) {
		return
	}
	x := &s.server(ensemble.ServerID(a.A)).Host
	for _, o := range n.hosts {
		if o == x || a.B > 0 && !s.isServer(a.B, o) || a.B < 0 && o != &s.clients.All[-a.B-1].Host {
			continue
		}
		switch a.Kind {
		case Block:
			n.block(x, o)
		case Cut:
			n.block(x, o)
			n.block(o, x)
		case Join:
			n.unblock(x, o)
			n.unblock(o, x)
		case Slow:
			n.lag[[2]int{x.Place, o.Place}] = a.Value
		case Reset:
			s.resetBetween(x, o, a.Value)
		}
	}
}

func (s *Sim) isServer(id int, h *machine.Host) bool {
	v := s.server(ensemble.ServerID(id))
	return v != nil && h == &v.Host
}

// resetBetween breaks all connections between two machines. The first one hears of it late
// µs later.
func (s *Sim) resetBetween(x, o *machine.Host, late int64) {
	between := func(c *tcpConn) bool {
		a, b := c.ends[0].host, c.ends[1].host
		return a == x && b == o || a == o && b == x
	}
	for _, v := range s.servers {
		if &v.Host != x {
			continue
		}
		for _, l := range v.links {
			if between(l.tcp) {
				l.tcp.sever(x, late)
			}
		}
		for _, p := range s.servers {
			if c := v.electionConn(p); c.tcp != nil && between(c.tcp) {
				c.tcp.sever(x, late)
			}
		}
		for _, c := range v.conns {
			if between(c.tcp) {
				c.tcp.sever(x, late)
			}
		}
	}
}

// clientFault carries out a fault of a client.
func clientFault(c *client.Client, a Act) {
	switch a.Kind {
	case Kill:
		c.Kill()
	case PowerOff:
		c.PowerOff()
	case Pause, Suspend:
		c.Stop(a.Kind == Suspend)
	case Resume, Awake:
		c.Resume()
	case SetClock:
		c.SetWall(a.Value)
	case Jump:
		c.Jump(a.Value)
	case Hang:
		c.Hang()
	case Return:
		c.Return()
	}
}
