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
	doubted                  // LEADER must be read: it may name this bid or another one
	named                    // LEADER names another bid: check whether that bid exists
	outlived                 // LEADER names a bid that is gone: replace it
	published                // LEADER names this bid
)

// publication is the state of the LEADER znode as the leader knows it.
type publication struct { // in the stage named: the other bid
	stage   stage
	other   string      // named: the bid
	version int32       // in the stages outlived and published: the version of LEADER
	wait    claim.Timer // runs until the next request may be sent
	err     error       // why this bid cannot be published
}

// pending reports whether the publication is incomplete.
func (p *publication) pending(path string) bool { return path != "" && p.stage != published }

// LeaderTaken reports that another program's LEADER znode exists, and that this leader must not remove it.
type LeaderTaken struct {
	Path       string // no session owns the znode, so it will not disappear by itself
	Persistent bool   // it will not go by itself
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
	case l.verify.Over(l.now):
		l.ask(stepVerify, claim.Op{Kind: claim.OpGet, Path: l.path(l.own.Name)})
	case l.pub.pending(l.cfg.Leader) && l.pub.wait.Over(l.now):
		l.planPublish()
	}
}

// planPublish makes the next request towards a LEADER that names the own bid.
func (l *Line) planPublish() {
	notice := claim.Notice{ID: l.cfg.ID, Bid: l.own.Name, Token: l.token}
	check := claim.Op{Kind: claim.OpCheck, Path: l.path(l.own.Name), Version: claim.AnyVersion}
	create := claim.Op{Kind: claim.OpCreate, Path: l.cfg.Leader, Data: notice.Encode()}
	switch l.pub.stage {
	case unpublished:
		l.ask(stepPublish, claim.Op{Kind: claim.OpMulti, Path: l.cfg.Leader, Ops: []claim.Op{check, create}})
	case doubted:
		l.ask(stepRead, claim.Op{Kind: claim.OpGet, Path: l.cfg.Leader})
	case named:
		l.ask(stepNamed, claim.Op{Kind: claim.OpSync, Path: l.cfg.Parent}, claim.Op{Kind: claim.OpGet, Path: l.path(l.pub.other)})
	case outlived:
		remove := claim.Op{Kind: claim.OpDelete, Path: l.cfg.Leader, Version: l.pub.version}
		l.ask(stepReplace, claim.Op{Kind: claim.OpMulti, Path: l.cfg.Leader, Ops: []claim.Op{check, remove, create}})
	}
}

// verifyEvery returns the interval at which a leader checks its bid.
func (l *Line) verifyEvery() time.Duration { return max(l.lease.Timeout/3, verifyMin) }

func (l *Line) tookVerify(r claim.Result) {
	if l.stands(r) {
		l.verify = claim.Timer{From: l.now, Wait: l.verifyEvery()}
	}
}

// tookPublish processes the result of creating or replacing LEADER. The first operation of the multi
// checks the own bid, so a leader whose bid is gone cannot publish.
func (l *Line) tookPublish(r claim.Result) {
	replacing := l.pub.stage == outlived
	switch {
	case r.Err == nil:
		l.publishedAs(0)
	case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		l.end(claim.BidGone, nil)
		l.own = claim.Bid{}
	case errors.Is(r.Err, wire.ErrNodeExists):
		l.pub.stage = doubted
	case replacing && (errors.Is(r.Err, wire.ErrNoNode) || errors.Is(r.Err, wire.ErrBadVersion)):
		l.pub.stage = unpublished
	case errors.Is(r.Err, wire.ErrNoNode): // the parent of LEADER is missing
		if l.phase == Leading {
			l.ask(stepLeaderParents, claim.Op{Kind: claim.OpParents, Path: path.Dir(l.cfg.Leader)})
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
	case notice.Bid == l.own.Name && owner == l.session:
		l.publishedAs(r.Stat.Version)
	case notice.Bid == l.own.Name:
		l.postpone(&LeaderTaken{Path: l.cfg.Leader})
	default:
		l.pub.stage, l.pub.other, l.pub.version = named, notice.Bid, r.Stat.Version
	}
}

// tookNamed finds out whether the bid that LEADER names still exists.
func (l *Line) tookNamed(sync, r claim.Result) {
	switch {
	case sync.Err != nil:
		l.postpone(sync.Err)
	case errors.Is(r.Err, wire.ErrNoNode):
		l.pub.stage = outlived
	case r.Err != nil:
		l.postpone(r.Err)
	default:
		l.postpone(&LeaderTaken{Path: l.cfg.Leader, Bid: l.pub.other})
	}
}

// publishedAs records that LEADER, at this version, names the own bid.
func (l *Line) publishedAs(version int32) {
	l.pub = publication{stage: published, version: version}
	if l.phase == Leading {
		l.tell(Published{l.own.Name, l.cfg.Leader})
	}
}

// postpone starts the publication again after publishPause. It sets no watch.
func (l *Line) postpone(err error) {
	if l.phase == Leading && (l.pub.err == nil || l.pub.err.Error() != err.Error()) {
		l.tell(Unpublished{l.own.Name, l.cfg.Leader, err})
	}
	l.pub = publication{stage: unpublished, wait: claim.Timer{From: l.now, Wait: publishPause}, err: err}
}
