package check

// The znodes that the clients of a run use, as clients and checkers know them.
const (
	ElectionPath = "/election" // bids for election
	LeaderPath   = ElectionPath + "/LEADER"
	LinePath     = "/line"          // bids for locks and for the leases of a semaphore
	ConfigPath   = "/configuration" // what leaders announce
	GuardedPath  = "/guarded"       // holders write their tokens here, and check their bids in the same transaction
	TxRoot       = "/tx"            // transactions of two phases

	QueueItems  = "/queue/entries"
	QueueClaims = "/queue/taken"
	CountPath   = "/count"
	IDsPath     = "/ids"
	IDBlock     = 5 // how many ids are reserved at once
	BarrierPath = "/barrier"
	GatePath    = "/gate"   // the double barrier
	SecretPath  = "/secret" // not everybody may read it

	ShareParent = "/share"
	ShareParts  = ShareParent + "/parts"
	ShareTasks  = ShareParent + "/tasks"
)

// RegisterPaths are the znodes that clients without a recipe read and write.
var RegisterPaths = []string{"/r0", "/r1", "/r2"}

// Places are the znodes at which registrants register.
var Places = []string{"/places/a", "/places/b"}
