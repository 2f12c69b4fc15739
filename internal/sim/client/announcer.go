package client

import (
	"errors"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// Announcer stands for election and announces configurations while it leads. At all times
// it also follows the announced configuration and the current leader.
type Announcer struct {
	Runner       // carries out the announcement under way
	candidate    *Candidate
	announcement *value.Announce // the announcement under way; nil: there is none
	data         string          // data of the announcement under way
	count        int             // number of announcements so far, which makes their data unique

	configs, leaders *follower
	config           value.Announcement // the last one seen
	leader           claim.Notice
}

// newAnnouncer makes a client an announcer: a candidate and two followers.
func newAnnouncer(c *Client) *Announcer {
	sp := &Announcer{candidate: newCandidate(c), configs: newFollower(c), leaders: newFollower(c)}
	sp.Runner = Runner{c: c, step: sp.step}
	sp.candidate.termBegan = sp.announceLater
	sp.configs.begin = func() operation { return value.NewAnnouncements(check.ConfigPath) }
	sp.configs.takeNews = sp.takeConfig
	sp.leaders.begin = func() operation { return value.NewLeaders(check.LeaderPath, new(value.Succession).Newest) }
	sp.leaders.takeNews = sp.takeLeader
	c.candidate, c.Player = sp.candidate, players{sp.candidate, sp.configs, sp.leaders, sp}
	return sp
}

func (sp *Announcer) attached() { sp.step(claim.Attached{Session: sp.c.Session}) }

func (sp *Announcer) crashed() {
	if sp.announcement != nil {
		sp.c.group.See(check.Announced{Data: sp.data, Outcome: sp.announcement.Outcome(), Err: sp.announcement.Err(), Crashed: true})
	}
	sp.drop()
	sp.announcement, sp.config, sp.leader = nil, value.Announcement{}, claim.Notice{}
}

func (sp *Announcer) takeConfig() {
	if a, news := sp.configs.m.(*value.Announcements).Next(); news {
		sp.c.group.See(check.ConfigurationSeen{Client: sp.c.ID, Life: sp.configs.life, Configuration: a})
		sp.config = a
	}
}

func (sp *Announcer) takeLeader() {
	if n, news := sp.leaders.m.(*value.Leaders).Next(); news {
		sp.c.group.See(check.LeaderSeen{Client: sp.c.ID, Life: sp.leaders.life, Leader: n})
		sp.leader = n
	}
}

// announceLater announces something after a while, if no announcement is under way then. The
// leader may have been deposed by then without knowing it. The announcement then fails,
// because it contains a check of the leader's bid.
func (sp *Announcer) announceLater(t *term) {
	within := 300 * machine.Millisecond
	if sp.c.random.Chance(10) {
		within = 5 * machine.Second
	}
	session := sp.c.Session
	sp.soon(within, func() {
		if sp.announcement == nil && sp.c.Attached && !sp.c.group.Phase().Quiet {
			sp.count++
			sp.prepare(t.bid, session, t.token, fmt.Sprintf("%d.%d", sp.c.ID, sp.count))
			sp.giveUpLater(sp.announcement)
			sp.step(claim.Attached{Session: sp.c.Session})
		}
		if sp.c.random.Chance(70) {
			sp.announceLater(t)
		}
	})
}

// prepare makes an announcement of a leader with a bid in a session.
func (sp *Announcer) prepare(bid string, session wire.SessionID, token wire.Zxid, data string) {
	sp.data = data
	sp.announcement = value.NewAnnounce(value.AnnounceConfig{Path: check.ConfigPath, Bid: bid, Session: session, Token: token, Data: []byte(data)})
}

// Announce makes an announcement at once, for a scenario. It returns the state machine.
func (sp *Announcer) Announce(bid string, session wire.SessionID, token wire.Zxid, data string) *value.Announce {
	sp.prepare(bid, session, token, data)
	m := sp.announcement
	sp.step(claim.Attached{Session: sp.c.Session})
	return m
}

// Candidate returns the announcer's candidate.
func (sp *Announcer) Candidate() *Candidate { return sp.candidate }

// giveUpLater makes a leader give up its announcement now and then.
func (sp *Announcer) giveUpLater(m *value.Announce) {
	if sp.c.random.Chance(4) {
		sp.soon(machine.Second, func() {
			if sp.announcement == m {
				sp.step(claim.Resign{})
			}
		})
	}
}

// step passes an event to the state machine and carries out what the machine asks for.
func (sp *Announcer) step(ev claim.Event) {
	m := sp.announcement
	if m == nil {
		return
	}
	m.Step(sp.now(), ev)
	rd := m.Ready()
	sp.request(rd.Request)
	if sp.announcement != m {
		return
	}
	if !m.Over() {
		sp.wake(rd.Wake)
		return
	}
	s, err := sp.c.group, m.Err()
	s.Tell("announcer %d: %s has %v%s", sp.c.ID, sp.data, m.Outcome(), because(err))
	if err != nil && !errors.Is(err, value.ErrBidGone) && !errors.Is(err, value.ErrNewer) {
		s.Fail("Announcements", "announcer %d cannot announce: %v", sp.c.ID, err)
		return
	}
	s.See(check.Announced{Data: sp.data, Outcome: m.Outcome(), Err: err})
	sp.announcement = nil
}

// Announcers returns all announcers of the run.
func (s *Group) Announcers() (all []*Announcer) {
	for _, c := range s.All {
		if p, ok := c.Player.(players); ok {
			if sp, ok := p[len(p)-1].(*Announcer); ok {
				all = append(all, sp)
			}
		}
	}
	return all
}

// Uninformed says who has not yet seen the last configuration or the current leader. It
// returns an empty text if there is nobody.
func (s *Group) Uninformed() string {
	all := s.Announcers()
	if len(all) == 0 {
		return ""
	}
	text, stat, _ := s.History().Content(check.ConfigPath)
	config, _ := value.ParseAnnouncement(text, stat)
	notice, stat, _ := s.History().Content(check.LeaderPath)
	leader := claim.NoticeOf(notice, stat)
	if leader.Token == 0 {
		return "no leader has published itself"
	}
	for _, sp := range all {
		switch {
		case sp.announcement != nil:
			return fmt.Sprintf("announcer %d has an announcement under way", sp.c.ID)
		case string(sp.config.Data) != string(config.Data) || sp.config.Version != config.Version:
			return fmt.Sprintf("announcer %d knows the configuration %q, but the tree has %q", sp.c.ID, sp.config.Data, config.Data)
		case sp.leader != leader:
			return fmt.Sprintf("announcer %d knows the leader %+v, but the tree names %+v", sp.c.ID, sp.leader, leader)
		}
	}
	return ""
}
