package recipe

import (
	"cmp"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/wire"
	"bellwether/zk"
)

// Decision is the outcome of a transaction: Commit, Abort or, while there is none,
// Undecided. Its string is the word that the znode "decision" holds.
type Decision = commit.Decision

// The decisions.
const (
	// Undecided: the decision is not known, or has not been made yet.
	Undecided Decision = commit.Undecided
	// Commit: every site has voted for the transaction.
	Commit Decision = commit.Commit
	// Abort: a site has voted against the transaction, or has not voted in time.
	Abort Decision = commit.Abort
)

// Tx is a transaction, as the functions of the application get it.
type Tx struct {
	Path  string // path of the transaction's znode; no other transaction ever has this path
	Sites []string
	Data  []byte
}

// CommitOptions are the settings of a Coordinator or a Site. A nil pointer means all
// defaults.
type CommitOptions struct {
	// Plain, for a Coordinator, lets each site watch all votes, so that the sites need no
	// coordinator once the transaction has begun. That costs n(n-1) watch events for n
	// sites. Without Plain there are four events for each site.
	Plain bool
	// Patience is how long a participant waits for the decision. After that a site that
	// has not voted counts as an abort. Default 30 s.
	Patience time.Duration
	// ACL is given to each znode that is created. By default everybody may do everything. The
	// coordinator and all sites must be able to read, create, write and delete.
	ACL zk.ACLs
	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// patienceDefault is the value of CommitOptions.Patience that 0 stands for.
const patienceDefault = 30 * time.Second

// committer holds what Coordinator and Site have in common.
type committer struct {
	b    agent
	root string
	opt  CommitOptions
}

func newCommitter(c *zk.Client, root string, o *CommitOptions) (committer, error) {
	opt := optionsOr(o)
	opt.Patience = cmp.Or(max(opt.Patience, 0), patienceDefault)
	b := newAgent(c, "commit", root, opt.ACL, opt.Logger, opt.Observer)
	return committer{b, root, opt}, b.validate()
}

// config returns the settings of a transaction's state machine. site is empty for the coordinator.
func (c *committer) config(path, site string) commit.Config {
	return commit.Config{Path: path, Site: site, Patience: c.opt.Patience}
}

// checkTx returns an error unless tx can be the path of a transaction below the root. Sites that serve the
// root find only such paths, and a znode at any other path must not be treated as a transaction.
func (c *committer) checkTx(tx string) error {
	if name := path.Base(tx); tx != claim.Join(c.root, name) || !wire.ValidPath(tx) || !strings.HasPrefix(name, claim.TxPrefix) {
		return fmt.Errorf("commit: %q is not the path of a transaction; want a path that Coordinator.Path has returned, which begins with %s: %w",
			tx, claim.Join(c.root, claim.TxPrefix), zk.ErrBadArguments)
	}
	return nil
}

// checkSite returns an error if name cannot be the name of a site. It becomes part of the name of a znode.
func checkSite(name string) error {
	return checkName("commit", name)
}
