package claim

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Naming is the way a recipe names its bids. It decides with whom a parent
// can be shared: candidates see each other's bids under every naming, but
// other libraries look for their own pattern only.
type Naming uint8

// The namings. Each but the last ends in the sequence number the server appends.
const (
	Own          Naming = iota // <32 hex digits>-n_<seq>
	Plain                      // n_<seq>, of Apache's LeaderElectionSupport
	CuratorLatch               // _c_<uuid>-latch-<seq>, of Curator's LeaderLatch
	CuratorLock                // _c_<uuid>-lock-<seq>, of Curator's InterProcessMutex
	KazooLock                  // <32 hex digits>__lock__<seq>, of kazoo's Lock and Election
	GoZKLock                   // _c_<32 hex digits>-lock-<seq>, of go-zookeeper's Lock
	Foreign                    // any other name that ends in a sequence number; never made by us
	OwnRead                    // <32 hex digits>-r_<seq>, beside Own for writers
	CuratorRead                // _c_<uuid>-__READ__<seq>, of Curator's InterProcessReadWriteLock
	CuratorWrite               // _c_<uuid>-__WRIT__<seq>, of the same
	KazooRead                  // <32 hex digits>__rlock__<seq>, of kazoo's ReadLock; its WriteLock's are KazooLock
	CuratorLease               // _c_<uuid>-lease-<seq>, of Curator's InterProcessSemaphoreV2
	KazooLease                 // <32 hex digits>, of kazoo's Semaphore
)

// Namings of what is no bid, as far as they can be told apart; never made by
// way of a Naming.
const (
	MemberName      Naming = iota + KazooLease + 1 // <id>, of our groups and Curator's GroupMember
	CuratorNode                                    // _c_<uuid>-<id>, of Curator's PersistentNode
	CuratorInstance                                // <id>, of Curator's service discovery and ours
	CuratorBarrier                                 // <uuid>, of Curator's DistributedDoubleBarrier
	CuratorItem                                    // queue-…<seq>, at work, of Curator's DistributedQueue
	KazooParty                                     // <32 hex digits>__party__, of kazoo's Party
	KazooShallow                                   // <32 hex digits>-<id>, of kazoo's ShallowParty
	HexBarrier                                     // <32 hex digits>, of our double barriers and kazoo's
	KazooItem                                      // entry-<priority>-<seq>, taken, of kazoo's LockingQueue
)

var NamingNames = [...]string{"own", "plain", "curator-latch", "curator-lock", "kazoo", "go-zk", "foreign",
	"own-read", "curator-read", "curator-write", "kazoo-read", "curator-lease", "kazoo-lease",
	"member", "curator-node", "curator-instance", "curator-barrier", "curator-item",
	"kazoo-party", "kazoo-shallow", "barrier", "kazoo-item"}

func (n Naming) String() string {
	if int(n) < len(NamingNames) {
		return NamingNames[n]
	}
	return "naming " + strconv.Itoa(int(n))
}

// Nonce is the random part of a bid's name, fresh for each bid. It makes a
// path unique for ever, which is what a guard that checks a path rests on.
type Nonce [16]byte

func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// uuid is the nonce as Curator writes it, 8-4-4-4-12.
func (n Nonce) uuid() string {
	h := n.String()
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// Prefix is the name of a bid before the server appends the sequence number.
// Plain names carry no nonce.
func (n Naming) Prefix(nonce Nonce) string {
	switch n {
	case Own:
		return nonce.String() + "-n_"
	case Plain:
		return "n_"
	case CuratorLatch:
		return "_c_" + nonce.uuid() + "-latch-"
	case CuratorLock:
		return "_c_" + nonce.uuid() + "-lock-"
	case KazooLock:
		return nonce.String() + "__lock__"
	case GoZKLock:
		return "_c_" + nonce.String() + "-lock-"
	case OwnRead:
		return nonce.String() + "-r_"
	case CuratorRead:
		return "_c_" + nonce.uuid() + "-__READ__"
	case CuratorWrite:
		return "_c_" + nonce.uuid() + "-__WRIT__"
	case KazooRead:
		return nonce.String() + "__rlock__"
	case CuratorLease:
		return "_c_" + nonce.uuid() + "-lease-"
	case KazooLease:
		return nonce.String()
	}
	panic(fmt.Sprintf("claim: bids of naming %v are not made here", n))
}

// Shared: bids of this naming are those of readers.
func (n Naming) Shared() bool { return n == OwnRead || n == CuratorRead || n == KazooRead }

// Parse takes a child's name apart in a line of bids of this naming.
func (n Naming) Parse(name string) (Bid, error) {
	switch {
	case n != KazooLease:
		return ParseBid(name)
	case IsHex32(name):
		return Bid{Name: name, Naming: KazooLease}, nil
	}
	return Bid{}, errNoBid
}

// Bids returns the bids among the children of a line of this naming. Those of
// KazooLease all have the number 0, so that their czxids order them.
func (n Naming) Bids(children []string) []Bid {
	if n != KazooLease {
		return ParseBids(children)
	}
	var bids []Bid
	for _, name := range children {
		if b, err := n.Parse(name); err == nil {
			bids = append(bids, b)
		}
	}
	return bids
}

// Bid is the name of a bid, taken apart.
type Bid struct {
	Name   string // as it stands below the parent
	Naming Naming
	Seq    int32
}

// errNoBid is for names that are no bid; callers skip them.
var errNoBid = errors.New("no sequence number at the end of the name")

// ParseBid takes a child's name apart. A name that does not end in a sequence
// number as servers write it is no bid: LEADER, lock tables, anything else
// that lies beside the bids. Nor is one that is an id as a whole, or the mark of
// a change, of which one in 500 ends in ten digits by chance.
func ParseBid(name string) (Bid, error) {
	for _, p := range patterns {
		i := strings.LastIndex(name, p.mark)
		if i < 0 || !p.head(name[:i]) {
			continue
		}
		if seq, ok := parseSeq(name[i+len(p.mark):]); ok {
			return Bid{Name: name, Naming: p.naming, Seq: seq}, nil
		}
	}
	if IsHex32(name) || IsUUID(name) || IsMark(name) {
		return Bid{}, errNoBid
	}
	for _, width := range [...]int{10, 11} {
		if i := len(name) - width; i >= 0 {
			if seq, ok := parseSeq(name[i:]); ok {
				return Bid{Name: name, Naming: Foreign, Seq: seq}, nil
			}
		}
	}
	return Bid{}, errNoBid
}

// patterns are the namings we know, the stricter ones first: a mark before
// the sequence number, and what may stand before the mark.
var patterns = [...]struct {
	naming Naming
	mark   string
	head   func(string) bool
}{
	{Own, "-n_", IsHex32},
	{Plain, "n_", func(s string) bool { return s == "" }},
	{CuratorLatch, "latch-", func(s string) bool { return s == "" || IsProtected(s, 36) }},
	{GoZKLock, "-lock-", func(s string) bool { return strings.HasPrefix(s, "_c_") && IsHex32(s[3:]) }},
	{CuratorLock, "lock-", func(s string) bool { return s == "" || IsProtected(s, 36) }},
	{KazooLock, "__lock__", IsHex32},
	{OwnRead, "-r_", IsHex32},
	{CuratorRead, "-__READ__", isCurator},
	{CuratorWrite, "-__WRIT__", isCurator},
	{KazooRead, "__rlock__", IsHex32},
	{CuratorLease, "-lease-", isCurator},
}

// IsHex32 reports whether s is 32 lower-case hex digits.
func IsHex32(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsUUID reports whether s is 32 lower-case hex digits as 8-4-4-4-12.
func IsUUID(s string) bool {
	return len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' && IsHex32(strings.ReplaceAll(s, "-", ""))
}

// IsProtected reports whether s is Curator's protection prefix with an id of
// n characters.
func IsProtected(s string, n int) bool {
	return len(s) == n+4 && strings.HasPrefix(s, "_c_") && s[n+3] == '-'
}

// isCurator reports whether s is that prefix with a UUID, up to its last hyphen.
func isCurator(s string) bool { return IsProtected(s+"-", 36) }

// parseSeq reads a sequence number exactly as servers write it, %010d of an
// int32: ten digits, or a minus sign with nine or ten.
func parseSeq(s string) (int32, bool) {
	if len(s) != 10 && len(s) != 11 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || FormatSeq(int32(n)) != s {
		return 0, false
	}
	return int32(n), true
}

// FormatSeq writes a sequence number as servers do.
func FormatSeq(seq int32) string { return fmt.Sprintf("%010d", seq) }

// IsMark reports whether a name is that of a mark, of a value's change or a queue's item.
func IsMark(name string) bool {
	if nonce, ok := strings.CutPrefix(name, "_m_"); ok {
		return IsHex32(nonce)
	}
	nonce, ok := strings.CutSuffix(name, "-put")
	return ok && IsHex32(nonce)
}

// TxPrefix begins the names of transactions below their root.
const TxPrefix = "tx-"

// Join is the path of a child below its parent, which may be the root.
func Join(parent, name string) string { return strings.TrimSuffix(parent, "/") + "/" + name }

// ProbeMax is how many znodes are read in one request when a plain bid is
// searched for.
const ProbeMax = 64
