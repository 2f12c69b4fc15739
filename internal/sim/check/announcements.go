package check

import (
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/record"
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
	configs map[int]seenConfig
	notices map[int]seenLeader
}

type (
	seenConfig struct {
		life   int
		config value.Announcement
	}
	seenLeader struct {
		life  int
		token wire.Zxid
	}
)

func newAnnouncements() *announcements {
	return &announcements{stood: map[string]bool{}, refused: map[string]bool{}, leaders: map[wire.Zxid]bool{},
		configs: map[int]seenConfig{}, notices: map[int]seenLeader{}}
}

func (*announcements) Name() string { return "Announcements" }

func (c *announcements) See(o any) string {
	switch e := o.(type) {
	case Committed:
		for _, body := range changesOf(e.Txn) {
			if wrong := c.changed(body); wrong != "" {
				return wrong
			}
		}
	case Announced:
		return c.over(e)
	case ConfigurationSeen:
		return c.config(e)
	case LeaderSeen:
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
	case ConfigPath:
		return c.stands(data)
	case LeaderPath:
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
		return fmt.Sprintf("%s is announced, but its leader had reported that it was not", data)
	}
	c.last, c.stood[data] = a.Token, true
	return ""
}

// over compares what a leader reports about an announcement with what happened.
func (c *announcements) over(e Announced) string {
	if e.Crashed || e.Outcome == claim.Unclear {
		return ""
	}
	done := e.Outcome == claim.Succeeded
	c.refused[e.Data] = !done
	if done != c.stood[e.Data] {
		return fmt.Sprintf("the leader that announced %s reports the outcome %v, which is not what happened", e.Data, e.Outcome)
	}
	return ""
}

func (c *announcements) config(e ConfigurationSeen) string {
	was, now, life := c.configs[e.Client], e.Configuration, e.Life
	goesOn := was.config.Token > 0 && was.life == life
	c.configs[e.Client] = seenConfig{life, now}
	switch {
	case !c.stood[string(now.Data)]:
		return fmt.Sprintf("client %d sees %s, which no leader has announced", e.Client, now.Data)
	case goesOn && now.Token < was.config.Token:
		return fmt.Sprintf("client %d sees %s of leader %v, but has already seen a configuration of leader %v", e.Client, now.Data, now.Token, was.config.Token)
	case goesOn && now.Version <= was.config.Version:
		return fmt.Sprintf("client %d sees version %d of the configuration, but has already seen version %d", e.Client, now.Version, was.config.Version)
	}
	return ""
}

func (c *announcements) leader(e LeaderSeen) string {
	was, now, life := c.notices[e.Client], e.Leader.Token, e.Life
	switch {
	case now == 0: // there is no leader
	case !c.leaders[now]:
		return fmt.Sprintf("client %d sees leader %v, but no such leader existed", e.Client, now)
	case was.life == life && now < was.token:
		return fmt.Sprintf("client %d sees leader %v, but has already seen leader %v", e.Client, now, was.token)
	default:
		c.notices[e.Client] = seenLeader{life, now}
	}
	return ""
}
