package recipe

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
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
// Undecided. As a string it is the word that the znode holds.
type Decision = commit.Decision

// The decisions.
const (
	// Undecided: the decision is not known, or has not been made yet.
	Undecided Decision = commit.Undecided
	// Commit: each site has voted for the transaction.
	Commit Decision = commit.Commit
	// Abort: a site has voted against the transaction, or did not vote in time.
	Abort Decision = commit.Abort
)

// Tx is a transaction as a site sees it.
type Tx struct {
	Path  string // its znode, which names it for ever
	Sites []string
	Data  []byte
}

// CommitOptions are the settings of a Coordinator or a Site; nil is all
// defaults.
type CommitOptions struct {
	// Plain, for a Coordinator: each site watches the votes of all and no
	// coordinator is needed once the transaction has begun. That costs n(n-1)
	// watch events; otherwise it is four for each site.
	Plain bool
	// Patience is how long a decision is waited for before whoever has not
	// voted counts as an abort. Default 30 s.
	Patience time.Duration
	// ACL of the znodes made, open to everybody by default. All who take part
	// must be able to read, create, write and delete.
	ACL zk.ACLs
	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// patienceDefault is CommitOptions.Patience where it is 0.
const patienceDefault = 30 * time.Second

// committer is what Coordinator and Site have in common.
type committer struct {
	b    agent
	root string
	opt  CommitOptions
}

func newCommitter(c *zk.Client, root string, o *CommitOptions) (committer, error) {
	var opt CommitOptions
	if o != nil {
		opt = *o
	}
	opt.Patience = cmp.Or(max(opt.Patience, 0), patienceDefault)
	b := newAgent(c, "commit", root, opt.ACL, opt.Logger, opt.Observer)
	return committer{b, root, opt}, b.validate()
}

// config is what the state machine of a transaction is about.
func (c *committer) config(path, site string) commit.CommitConfig {
	return commit.CommitConfig{Path: path, Site: site, Patience: c.opt.Patience}
}

// freshTx is a name that never was and never comes again.
func freshTx() string {
	var id [16]byte
	rand.Read(id[:])
	return claim.TxPrefix + hex.EncodeToString(id[:])
}

// checkTx looks at the path of a transaction: no other is found by sites that serve the
// root, and what stands elsewhere is not to be taken for one.
func (c *committer) checkTx(tx string) error {
	if name := path.Base(tx); tx != claim.Join(c.root, name) || !wire.ValidPath(tx) || !strings.HasPrefix(name, claim.TxPrefix) {
		return fmt.Errorf("commit: %q is not the path of a transaction, as Coordinator.Path makes them: %s…: %w",
			tx, claim.Join(c.root, claim.TxPrefix), zk.ErrBadArguments)
	}
	return nil
}

// checkSite looks at the name of a site, which becomes part of a znode's.
func checkSite(name string) error {
	return checkName("commit", name)
}
