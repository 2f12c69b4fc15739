package claim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"bellwether/wire"
)

// stage is how far the publication at LEADER has come.
type stage uint8

const (
	unpublished stage = iota // to be created
	doubted                  // may be ours, or somebody's: to be read
	named                    // names another bid: does that one stand?
	outlived                 // names a bid that is gone: to be replaced
	published                // is ours
)

// publication is the state of the LEADER znode as its leader sees it.
type publication struct {
	stage   stage
	other   string // named: the bid
	version int32  // outlived, published: of LEADER
	wait    timer  // not before
	err     error  // why it is in the way
}

// pending reports whether something is left to do.
func (p *publication) pending(path string) bool { return path != "" && p.stage != published }

// LeaderTaken: LEADER is in the way and no leader of this recipe may remove it.
type LeaderTaken struct {
	Path       string
	Persistent bool   // it will not go by itself
	Bid        string // the standing bid it names; empty for data of others
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

// planLead publishes, and looks from time to time whether the bid stands.
// Leading does not wait for either.
func (e *Election) planLead() {
	switch {
	case e.watched != "":
		e.planUnwatch()
	case e.verify.over(e.now):
		e.ask(stepVerify, Op{Kind: OpGet, Path: e.path(e.own.Name)})
	case e.pub.pending(e.cfg.Leader) && e.pub.wait.over(e.now):
		e.planPublish()
	}
}

// planPublish is the next step towards a LEADER that names the own bid.
func (e *Election) planPublish() {
	notice := Notice{e.cfg.ID, e.own.Name, e.token}
	check := Op{Kind: OpCheck, Path: e.path(e.own.Name), Version: AnyVersion}
	create := Op{Kind: OpCreate, Path: e.cfg.Leader, Data: notice.Encode()}
	switch e.pub.stage {
	case unpublished:
		e.ask(stepPublish, Op{Kind: OpMulti, Path: e.cfg.Leader, Ops: []Op{check, create}})
	case doubted:
		e.ask(stepRead, Op{Kind: OpGet, Path: e.cfg.Leader})
	case named:
		e.ask(stepNamed, Op{Kind: OpSync, Path: e.cfg.Parent}, Op{Kind: OpGet, Path: e.path(e.pub.other)})
	case outlived:
		remove := Op{Kind: OpDelete, Path: e.cfg.Leader, Version: e.pub.version}
		e.ask(stepReplace, Op{Kind: OpMulti, Path: e.cfg.Leader, Ops: []Op{check, remove, create}})
	}
}

// verifyEvery is how often a leader looks at its bid.
func (e *Election) verifyEvery() time.Duration { return max(e.lease.Timeout/3, verifyMin) }

func (e *Election) tookVerify(r Result) {
	if e.stands(r) {
		e.verify = timer{e.now, e.verifyEvery()}
	}
}

// tookPublish reads the outcome of either multi. Its first operation checks
// the own bid, so a leader whose bid is gone cannot publish.
func (e *Election) tookPublish(r Result) {
	replacing := e.pub.stage == outlived
	switch {
	case r.Err == nil:
		e.publishedAs(0)
	case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		e.end(BidGone, nil)
		e.own = Bid{}
	case errors.Is(r.Err, wire.ErrNodeExists):
		e.pub.stage = doubted
	case replacing && (errors.Is(r.Err, wire.ErrNoNode) || errors.Is(r.Err, wire.ErrBadVersion)):
		e.pub.stage = unpublished
	case errors.Is(r.Err, wire.ErrNoNode): // LEADER lies elsewhere, and nothing is there yet
		if e.phase == Leading {
			e.ask(stepLeaderParents, Op{Kind: OpParents, Path: parentOf(e.cfg.Leader)})
		}
	default:
		e.postpone(r.Err)
	}
}

// parentOf is the path above a znode that is not the root.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// tookRead tells whose LEADER is.
func (e *Election) tookRead(r Result) {
	if errors.Is(r.Err, wire.ErrNoNode) {
		e.pub.stage = unpublished
		return
	}
	if r.Err != nil {
		e.postpone(r.Err)
		return
	}
	notice, err := ParseNotice(r.Data)
	owner := r.Stat.EphemeralOwner
	switch {
	case owner == 0:
		e.postpone(&LeaderTaken{Path: e.cfg.Leader, Persistent: true})
	case err != nil:
		e.postpone(&LeaderTaken{Path: e.cfg.Leader})
	case notice.Bid == e.own.Name && owner == e.session:
		e.publishedAs(r.Stat.Version)
	case notice.Bid == e.own.Name:
		e.postpone(&LeaderTaken{Path: e.cfg.Leader})
	default:
		e.pub.stage, e.pub.other, e.pub.version = named, notice.Bid, r.Stat.Version
	}
}

// tookNamed tells whether the bid that LEADER names still stands.
func (e *Election) tookNamed(sync, r Result) {
	switch {
	case sync.Err != nil:
		e.postpone(sync.Err)
	case errors.Is(r.Err, wire.ErrNoNode):
		e.pub.stage = outlived
	case r.Err != nil:
		e.postpone(r.Err)
	default:
		e.postpone(&LeaderTaken{Path: e.cfg.Leader, Bid: e.pub.other})
	}
}

// publishedAs takes note that LEADER, at this version, is ours.
func (e *Election) publishedAs(version int32) {
	e.pub = publication{stage: published, version: version}
	if e.phase == Leading {
		e.tell(Published{e.own.Name, e.cfg.Leader})
	}
}

// postpone waits, without a watch, and starts again.
func (e *Election) postpone(err error) {
	if e.phase == Leading && (e.pub.err == nil || e.pub.err.Error() != err.Error()) {
		e.tell(Unpublished{e.own.Name, e.cfg.Leader, err})
	}
	e.pub = publication{stage: unpublished, wait: timer{e.now, publishPause}, err: err}
}
