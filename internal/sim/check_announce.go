package sim

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// announcements checks that no announcement replaces that of a later leader. Each
// announcement is written once or not at all, as its leader reports. Within the life of a
// process, a follower sees only what was announced and never goes back to an earlier
// announcement. The same holds for the leaders that it sees.
type announcements struct {
	last    wire.Zxid       // token of the present announcement
	stood   map[string]bool // data of all announcements ever written
	refused map[string]bool // data of announcements that were reported as not written
	leaders map[wire.Zxid]bool
	configs map[*announcer]seenConfig
	notices map[*announcer]seenLeader
}

type (
	seenConfig struct {
		life   operation
		config value.Announcement
	}
	seenLeader struct {
		life  operation
		token wire.Zxid
	}
)

func newAnnouncements() *announcements {
	return &announcements{stood: map[string]bool{}, refused: map[string]bool{}, leaders: map[wire.Zxid]bool{},
		configs: map[*announcer]seenConfig{}, notices: map[*announcer]seenLeader{}}
}

func (*announcements) Name() string { return "Announcements" }

func (c *announcements) See(o any) string {
	switch e := o.(type) {
	case check.Committed:
		for _, body := range changesOf(e.Txn) {
			if wrong := c.changed(body); wrong != "" {
				return wrong
			}
		}
	case announced:
		return c.over(e)
	case configSeen:
		return c.config(e)
	case leaderSeen:
		return c.leader(e)
	}
	return ""
}

// changed checks a write to the znodes in which leaders announce something.
func (c *announcements) changed(body record.TxnBody) string {
	path, data := "", []byte(nil)
	switch b := body.(type) {
	case *record.CreateTxn:
		path, data = b.Path, b.Data
	case *record.SetDataTxn:
		path, data = b.Path, b.Data
	}
	switch path {
	case configPath:
		return c.stands(data)
	case electionPath + "/LEADER":
		if n, err := claim.ParseNotice(data); err == nil {
			c.leaders[n.Token] = true
		}
	}
	return ""
}

func (c *announcements) stands(text []byte) string {
	a, ok := value.ParseAnnouncement(text, wire.Stat{})
	data := string(a.Data)
	switch {
	case !ok:
		return fmt.Sprintf("%q is announced", text)
	case a.Token < c.last:
		return fmt.Sprintf("%s of leader %v is announced after one of leader %v", data, a.Token, c.last)
	case c.stood[data]:
		return fmt.Sprintf("%s is announced again", data)
	case c.refused[data]:
		return fmt.Sprintf("%s is announced, and was said not to be", data)
	}
	c.last, c.stood[data] = a.Token, true
	return ""
}

// over compares what a leader reports about an announcement with what happened.
func (c *announcements) over(e announced) string {
	if e.crashed || e.m.Outcome() == claim.Unclear {
		return ""
	}
	done := e.m.Outcome() == claim.Succeeded
	c.refused[e.data] = !done
	if done != c.stood[e.data] {
		return fmt.Sprintf("%s: its leader says that it has %v", e.data, e.m.Outcome())
	}
	return ""
}

func (c *announcements) config(e configSeen) string {
	was, now, life := c.configs[e.by], e.config, e.by.configs.m
	goesOn := was.config.Token > 0 && was.life == life
	c.configs[e.by] = seenConfig{life, now}
	switch {
	case !c.stood[string(now.Data)]:
		return fmt.Sprintf("client %d sees %s, which nobody has announced", e.by.c.id, now.Data)
	case goesOn && now.Token < was.config.Token:
		return fmt.Sprintf("client %d sees %s of leader %v, and has seen one of leader %v", e.by.c.id, now.Data, now.Token, was.config.Token)
	case goesOn && now.Version <= was.config.Version:
		return fmt.Sprintf("client %d sees version %d, and has seen version %d", e.by.c.id, now.Version, was.config.Version)
	}
	return ""
}

func (c *announcements) leader(e leaderSeen) string {
	was, now, life := c.notices[e.by], e.leader.Token, e.by.leaders.m
	switch {
	case now == 0: // there is no leader
	case !c.leaders[now]:
		return fmt.Sprintf("client %d sees leader %v, and there was none", e.by.c.id, now)
	case was.life == life && now < was.token:
		return fmt.Sprintf("client %d sees leader %v, and has seen leader %v", e.by.c.id, now, was.token)
	default:
		c.notices[e.by] = seenLeader{life, now}
	}
	return ""
}
