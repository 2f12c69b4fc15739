package claim

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Naming is the naming scheme of bids. Candidates of this project recognise bids of every scheme, but other
// libraries recognise only their own. The scheme therefore decides which libraries can share a parent.
type Naming uint8

// The naming schemes. Names of all schemes except KazooLease end in the sequence number that the server
// appends.
const (
	Own          Naming = iota // <32 hex digits>-n_<seq>
	Plain                      // n_<seq>, of Apache's LeaderElectionSupport
	CuratorLatch               // _c_<uuid>-latch-<seq>, of Curator's LeaderLatch
	CuratorLock                // _c_<uuid>-lock-<seq>, of Curator's InterProcessMutex
	KazooLock                  // <32 hex digits>__lock__<seq>, of kazoo's Lock and Election
	GoZKLock                   // _c_<32 hex digits>-lock-<seq>, of go-zookeeper's Lock
	Foreign                    // any other name that ends in a sequence number; this project makes no such bids
	OwnRead                    // <32 hex digits>-r_<seq>, beside Own for writers
	CuratorRead                // _c_<uuid>-__READ__<seq>, of Curator's InterProcessReadWriteLock
	CuratorWrite               // _c_<uuid>-__WRIT__<seq>, of Curator's InterProcessReadWriteLock
	KazooRead                  // <32 hex digits>__rlock__<seq>, of kazoo's ReadLock; bids of kazoo's WriteLock are KazooLock
	CuratorLease               // _c_<uuid>-lease-<seq>, of Curator's InterProcessSemaphoreV2
	KazooLease                 // <32 hex digits>, of kazoo's Semaphore
)

// Namings of znodes that are not bids. No bid is created with one of them. Znodes of different recipes whose
// names have the same form have the same naming.
const (
	MemberName      Naming = iota + KazooLease + 1 // <id>, of this project's groups and Curator's GroupMember
	CuratorNode                                    // _c_<uuid>-<id>, of Curator's PersistentNode
	CuratorInstance                                // <id>, of Curator's service discovery and this project's
	CuratorBarrier                                 // <uuid>, of Curator's DistributedDoubleBarrier
	CuratorItem                                    // queue-…<seq>, an item at work, of Curator's DistributedQueue
	KazooParty                                     // <32 hex digits>__party__, of kazoo's Party
	KazooShallow                                   // <32 hex digits>-<id>, of kazoo's ShallowParty
	HexBarrier                                     // <32 hex digits>, of double barriers of this project and of kazoo
	KazooItem                                      // entry-<priority>-<seq>, a taken item, of kazoo's LockingQueue
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

// Nonce is the random part of a bid's name. Each bid has a new one, so that no two bids ever have the same
// path. A guard, which checks only the path, depends on this.
type Nonce [16]byte

func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// uuid returns the nonce in Curator's form, 8-4-4-4-12.
func (n Nonce) uuid() string {
	h := n.String()
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// BidPrefix returns the name of a bid without the sequence number. Plain names contain no nonce.
func BidPrefix(n Naming, nonce Nonce) string {
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
	panic(fmt.Sprintf("claim: this function makes no bids of naming %v", n))
}

// IsShared reports whether bids of this scheme are those of readers.
func IsShared(n Naming) bool { return n == OwnRead || n == CuratorRead || n == KazooRead }

// ParseBidOf parses the name of a child below a parent whose bids use this scheme.
func ParseBidOf(n Naming, name string) (Bid, error) {
	switch {
	case n != KazooLease:
		return ParseBid(name)
	case IsHex32(name):
		return Bid{Name: name, Naming: KazooLease}, nil
	}
	return Bid{}, errNoBid
}

// BidsOf returns the bids among the children. Bids of KazooLease all have Seq 0, and only their czxids order
// them.
func BidsOf(n Naming, children []string) []Bid {
	if n != KazooLease {
		return ParseBids(children)
	}
	var bids []Bid
	for _, name := range children {
		if b, err := ParseBidOf(n, name); err == nil {
			bids = append(bids, b)
		}
	}
	return bids
}

// Bid is a parsed bid name.
type Bid struct {
	Name   string // full name of the znode below its parent
	Naming Naming
	Seq    int32
}

// errNoBid means that a name is not that of a bid. Callers skip such names.
var errNoBid = errors.New("no sequence number at the end of the name")

// ParseBid parses the name of a child. A name that does not end in a sequence number is not a bid, for
// example LEADER. A name that consists only of an id (32 hex digits or a UUID) or of a mark is not a bid
// either, although about one in 500 of them ends in ten decimal digits by chance.
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

// patterns lists the naming schemes that have a known form, the stricter ones first. mark is the text
// before the sequence number. head checks what precedes the mark.
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

// isCurator reports whether s is Curator's protection prefix with a UUID, without the hyphen at its end.
func isCurator(s string) bool { return IsProtected(s+"-", 36) }

// parseSeq parses a sequence number in exactly the form that servers write, %010d of an int32: ten digits,
// or a minus sign with nine or ten digits.
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

// FormatSeq formats a sequence number as servers append it to the name of a sequential znode.
func FormatSeq(seq int32) string { return fmt.Sprintf("%010d", seq) }

// IsMark reports whether a name is that of a mark: an ephemeral znode by which a client detects whether
// its change of a value, or its addition of a queue item, was carried out.
func IsMark(name string) bool {
	if nonce, ok := strings.CutPrefix(name, "_m_"); ok {
		return IsHex32(nonce)
	}
	nonce, ok := strings.CutSuffix(name, "-put")
	return ok && IsHex32(nonce)
}

// TxPrefix is the first part of the name of every transaction znode.
const TxPrefix = "tx-"

// Join returns the path of a child; the parent may be "/".
func Join(parent, name string) string { return strings.TrimSuffix(parent, "/") + "/" + name }

// ProbeMax is the largest number of znodes that one request reads in the search for a plain bid.
const ProbeMax = 64
