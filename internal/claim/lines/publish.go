package lines

import (
	"errors"
	"fmt"
	"path"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// stage is the progress of the publication at LEADER.
type stage uint8

const (
	unpublished stage = iota // LEADER must be created
	unknown                  // LEADER must be read: it may name this bid or another one
	taken                    // LEADER names another bid: check whether that bid exists
	orphaned                 // LEADER names a bid that is gone: replace it
	published                // LEADER names this bid
)

// publication is the state of the LEADER znode as the leader knows it.
type publication struct {
	stage   stage
	other   string      // in the stage taken: the bid that LEADER names
	version int32       // in the stages taken, orphaned and published: the version of LEADER
	wait    claim.Timer // runs until the next request may be sent
	err     error       // why this bid cannot be published
}

// pending reports whether the publication is incomplete.
func (p *publication) pending(path string) bool { return path != "" && p.stage != published }

// LeaderTaken reports that another program's LEADER znode exists, and that this leader must not remove it.
type LeaderTaken struct {
	Path       string // path of the LEADER znode
	Persistent bool   // no session owns the znode, so it will not disappear by itself
	Bid        string // the existing bid that LEADER names; empty if another recipe wrote the data
}

func (e *LeaderTaken) Error() string {
	switch {
	case e.Persistent:
		return fmt.Sprintf("%s is a persistent znode of somebody else: delete it, or publish elsewhere", e.Path)
	case e.Bid != "":
		return fmt.Sprintf("%s names %s, which still stands", e.Path, e.Bid)
	}
	return fmt.Sprintf("%s belongs to somebody else until their session ends", e.Path)
}

// planLead publishes the bid, and checks from time to time that the bid still exists. The term does not
// wait for either.
func (l *Line) planLead() {
	switch {
	case l.watched != "":
		l.planUnwatch()
	case l.verify.Over(l.Now):
		l.AskOne(l.tookVerify, claim.Get(l.path(l.own.Name)))
	case l.pub.pending(l.cfg.Leader) && l.pub.wait.Over(l.Now):
		l.planPublish()
	}
}

// planPublish makes the next request that is needed until LEADER names this Line's bid.
func (l *Line) planPublish() {
	notice := claim.Notice{ID: l.cfg.ID, Bid: l.own.Name, Token: l.token}
	check := claim.Check(l.path(l.own.Name))
	create := claim.Op{Kind: claim.OpCreate, Path: l.cfg.Leader, Data: notice.Encode()}
	switch l.pub.stage {
	case unpublished:
		l.publish(claim.Multi(l.cfg.Leader, check, create))
	case unknown:
		l.AskOne(l.tookRead, claim.Get(l.cfg.Leader))
	case taken:
		l.Ask(l.tookTaken, claim.Sync(l.cfg.Parent), claim.Get(l.path(l.pub.other)))
	case orphaned:
		remove := claim.Op{Kind: claim.OpDelete, Path: l.cfg.Leader, Version: l.pub.version}
		l.publish(claim.Multi(l.cfg.Leader, check, remove, create))
	}
}

// publish creates or replaces LEADER in one transaction.
func (l *Line) publish(multi claim.Op) {
	l.AskOne(l.tookPublish, multi)
	l.OnLoss(func() { l.pub.stage = unknown })
}

func (l *Line) tookLeaderParents(r claim.Result) {
	if r.Err != nil {
		l.postpone(r.Err)
	}
}

// verifyEvery returns the interval at which a leader checks its bid.
func (l *Line) verifyEvery() time.Duration { return max(l.lease.Timeout/3, verifyMin) }

func (l *Line) tookVerify(r claim.Result) {
	if l.checkOwn(r) {
		l.verify = claim.Timer{From: l.Now, Wait: l.verifyEvery()}
	}
}

// tookPublish processes the result of creating or replacing LEADER. The first operation of the multi
// checks this Line's bid, so a leader whose bid is gone cannot publish.
func (l *Line) tookPublish(r claim.Result) {
	replacing := l.pub.stage == orphaned
	switch {
	case r.Err == nil:
		l.publishedAs(0)
	case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		l.bidGone()
	case errors.Is(r.Err, wire.ErrNodeExists):
		l.pub.stage = unknown
	case replacing && (errors.Is(r.Err, wire.ErrNoNode) || errors.Is(r.Err, wire.ErrBadVersion)):
		l.pub.stage = unpublished
	case errors.Is(r.Err, wire.ErrNoNode): // the parent of LEADER is missing
		if l.phase == Leading {
			l.AskOne(l.tookLeaderParents, claim.MakeParents(path.Dir(l.cfg.Leader)))
		}
	default:
		l.postpone(r.Err)
	}
}

// tookRead finds out to whom LEADER belongs.
func (l *Line) tookRead(r claim.Result) {
	if errors.Is(r.Err, wire.ErrNoNode) {
		l.pub.stage = unpublished
		return
	}
	if r.Err != nil {
		l.postpone(r.Err)
		return
	}
	notice, err := claim.ParseNotice(r.Data)
	owner := r.Stat.EphemeralOwner
	switch {
	case owner == 0:
		l.postpone(&LeaderTaken{Path: l.cfg.Leader, Persistent: true})
	case err != nil:
		l.postpone(&LeaderTaken{Path: l.cfg.Leader})
	case notice.Bid == l.own.Name && owner == l.Current:
		l.publishedAs(r.Stat.Version)
	case notice.Bid == l.own.Name:
		l.postpone(&LeaderTaken{Path: l.cfg.Leader})
	default:
		l.pub.stage, l.pub.other, l.pub.version = taken, notice.Bid, r.Stat.Version
	}
}

// tookTaken finds out whether the bid that LEADER names still exists.
func (l *Line) tookTaken(res []claim.Result) {
	switch sync, r := res[0], res[1]; {
	case sync.Err != nil:
		l.postpone(sync.Err)
	case errors.Is(r.Err, wire.ErrNoNode):
		l.pub.stage = orphaned
	case r.Err != nil:
		l.postpone(r.Err)
	default:
		l.postpone(&LeaderTaken{Path: l.cfg.Leader, Bid: l.pub.other})
	}
}

// publishedAs records that LEADER, at this version, names this Line's bid.
func (l *Line) publishedAs(version int32) {
	l.pub = publication{stage: published, version: version}
	if l.phase == Leading {
		l.Report(Published{l.own.Name, l.cfg.Leader})
	}
}

// postpone starts the publication again after publishPause. It sets no watch.
func (l *Line) postpone(err error) {
	if l.phase == Leading && (l.pub.err == nil || l.pub.err.Error() != err.Error()) {
		l.Report(Unpublished{l.own.Name, l.cfg.Leader, err})
	}
	l.pub = publication{stage: unpublished, wait: claim.Timer{From: l.Now, Wait: publishPause}, err: err}
}
