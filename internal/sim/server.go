package sim

import (
	"bellwether/internal/driver"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// server is a machine with a disk. While it is up, a process on it drives a replica.
//
// A process that starts or ends increases life. Scheduled work of an earlier life is
// dropped. A batch is under way exactly while stepped is true; events that arrive then wait
// in the inbox.
type server struct {
	machine.Host
	sim        *Sim
	id         ensemble.ServerID
	compatible bool                 // it behaves as a server of ZooKeeper
	members    *ensemble.Membership // the list of servers that it uses; nil: it has none yet
	proposed   *ensemble.Membership // with Options.Reconfig: a newer one in its log; nil: there is none
	absent     bool                 // the newest list does not contain it
	served     int                  // value of Sim.steps when it last began to serve

	fs      *store.Mem
	unknown bool // its disk was wiped, and the server does not know its earlier history
	// syncFailed says that a failed fsync ended its last process, and that nothing was lost
	// since.
	syncFailed  bool
	slowDisk    int64
	slowSnap    int64    // µs that each piece of a snapshot that it sends takes longer
	hung        bool     // its disk answers nothing
	hungTasks   []func() // work that waits until the disk answers
	space       int64    // free bytes on its disk; -1: no limit
	snapEvery   int
	rejoined    wire.Epoch    // the epoch in which it served last
	installed   bool          // its snapshot came from a leader, which may have been ahead of the snapshot's zxid
	has         bool          // it was synchronised since its disk was new
	undelivered []*record.Txn // its history, except what has already been delivered
	removals    []removal     // truncations and installations that its disk was told to carry out and has not yet
	fuzzyTo     wire.Zxid     // its tree may have effects of transactions up to here that it has not applied
	everFuzzy   bool          // installed was true at some time since its disk was new
	rotten      bool          // its snapshots or logs have decayed
	blank       bool          // its disk is new, and no process has read it yet
	lied        bool          // the disk lied when the power failed last, and no process has read it since
	liesPartly  bool          // its disk lies, and a power failure may keep a part of what was promised
	epochRotten bool          // an epoch file has decayed, and no process has read it yet
	claims      promise       // what the disk had promised when it fell back to an earlier state
	unbroken    wire.Zxid     // each snapshot from here on is enough, with the logs, to load everything after it
	hole        string        // what its history lacks in the middle, although no file shows that; empty: nothing
	forgetful   bool          // the server has fallen back, and has not regained everything since

	// The following fields belong to one life of the process.
	up                bool
	leaving           bool // it has said that it is about to stop, and joins the next leader without a vote
	paused            bool
	life              int
	replica           *replica.Replica
	tree              *tree.Tree
	log               *zab.Log
	store             *store.Store
	saved             store.Epochs // the epochs on the disk
	ordered           wire.Epoch   // the currentEpoch that the disk has or was told to save
	inbox             []replica.Event
	backlog           []func() // work that arrived while the process was stopped
	due               bool     // a batch is scheduled
	stepped           bool     // a batch is under way
	order             *driver.Batch
	events            []replica.Event // events of the batch under way
	ticked            bool            // the next batch contains a tick
	ticks             bool            // the batch under way contains one
	nextHeartbeat     int64           // Mono ms at which Heartbeat must be called
	longRequest       longRequest
	standsStill       int64        // how long the next batch takes, in µs; 0: as long as others
	busyAfter         int          // number of events or effects until the batch takes long; 0: it does not
	alarm             int64        // µs of the next alarm that is set; 0: none
	lease             driver.Lease // the lease at the end of the last batch
	led               bool         // it served at the end of the last batch
	at                replica.Time // time of the last batch
	began             int64        // µs at which the last batch began
	acks              int          // packets of acknowledgement that it has sent
	writer            writer
	electionConns     map[ensemble.ServerID]*electionConn
	dialsLeader       ensemble.ServerID
	dials             int // how often the leader to dial has changed
	listens           bool
	links             []*link
	linked            zab.LinkID // link of the last Linked that was stepped
	logged            driver.Logged
	receivedSnapshots map[zab.LinkID]receivedSnapshot
	conns             []*conn // connections of clients
	standing          replica.Status
	knowsFull         bool // it was told that its disk is full
	shutOut           bool // it has been disabled since before the event that is stepped
	crowded           bool // it gets no processor, so that events gather in its inbox
	lacksTree         bool // it was told that a snapshot is installed, and has not got its tree yet
	seen              position
}

// later calls the function do after d µs, in this life of the process. While the process is
// stopped, the call waits until the process goes on.
func (v *server) later(d int64, do func()) {
	life := v.life
	v.sim.after(d, func() {
		if v.up && v.life == life {
			v.arrive(do)
		}
	})
}

// arrive calls the function do, which stands for something that reaches the process. While
// the process is stopped, the call waits until the process goes on.
func (v *server) arrive(do func()) {
	switch {
	case !v.up:
	case v.paused:
		v.backlog = append(v.backlog, do)
	default:
		do()
	}
}
