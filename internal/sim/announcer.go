package sim

import (
	"errors"
	"fmt"

	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
)

// configPath is the znode in which leaders announce configurations.
const configPath = "/configuration"

// announcer stands for election and announces configurations while it leads. At all times
// it also follows the announced configuration and the current leader.
type announcer struct {
	runner // carries out the announcement under way
	k      *candidate
	m      *value.Announce // the announcement under way; nil: there is none
	data   string          // data of the announcement under way
	n      int             // number of announcements so far, which makes their data unique

	configs, leaders *follower
	config           value.Announcement // the last one seen
	leader           claim.Notice
}

// Observations of announcers, for the checkers.
type (
	// announced says that an announcement ended, or that its process did.
	announced struct {
		by      *announcer
		m       *value.Announce
		data    string
		crashed bool
	}
	// configSeen and leaderSeen say that a follower has seen a new configuration or a new
	// leader.
	configSeen struct {
		by     *announcer
		config value.Announcement
	}
	leaderSeen struct {
		by     *announcer
		leader claim.Notice
	}
)

// newAnnouncer makes a client an announcer: a candidate and two followers.
func newAnnouncer(c *client) *announcer {
	sp := &announcer{k: newCandidate(c), configs: newFollower(c), leaders: newFollower(c)}
	sp.runner = runner{c: c, step: sp.step}
	sp.k.led = sp.speakLater
	sp.configs.begin = func() operation { return value.NewAnnouncements(configPath) }
	sp.configs.look = sp.lookAtConfig
	sp.leaders.begin = func() operation { return value.NewLeaders(electionPath+"/LEADER", new(value.Succession).Know) }
	sp.leaders.look = sp.lookAtLeader
	c.candidate, c.player = sp.k, parts{sp.k, sp.configs, sp.leaders, sp}
	return sp
}

func (sp *announcer) attached() { sp.step(claim.Attached{Session: sp.c.session}) }

func (sp *announcer) crashed() {
	if sp.m != nil {
		sp.c.sim.see(announced{sp, sp.m, sp.data, true})
	}
	sp.drop()
	sp.m, sp.config, sp.leader = nil, value.Announcement{}, claim.Notice{}
}

func (sp *announcer) lookAtConfig() {
	if a, news := sp.configs.m.(*value.Announcements).Next(); news {
		sp.c.sim.see(configSeen{sp, a})
		sp.config = a
	}
}

func (sp *announcer) lookAtLeader() {
	if n, news := sp.leaders.m.(*value.Leaders).Next(); news {
		sp.c.sim.see(leaderSeen{sp, n})
		sp.leader = n
	}
}

// speakLater announces something after a while, if no announcement is under way then. The
// leader may have been deposed by then without knowing it. The check of its bid detects
// that.
func (sp *announcer) speakLater(t *term) {
	within := 300 * millisecond
	if sp.c.random.chance(10) {
		within = 5 * second
	}
	session := sp.c.session
	sp.soon(within, func() {
		if sp.m == nil && sp.c.attached && !sp.c.sim.quiet {
			sp.n++
			sp.data = fmt.Sprintf("%d.%d", sp.c.id, sp.n)
			sp.m = value.NewAnnounce(value.AnnounceConfig{Path: configPath, Bid: t.bid, Session: session, Token: t.token, Data: []byte(sp.data)})
			sp.giveUpLater(sp.m)
			sp.step(claim.Attached{Session: sp.c.session})
		}
		if sp.c.random.chance(70) {
			sp.speakLater(t)
		}
	})
}

// giveUpLater makes a leader give up its announcement now and then.
func (sp *announcer) giveUpLater(m *value.Announce) {
	if sp.c.random.chance(4) {
		sp.soon(second, func() {
			if sp.m == m {
				sp.step(claim.Resign{})
			}
		})
	}
}

// step passes an event to the state machine and carries out what the machine asks for.
func (sp *announcer) step(ev claim.Event) {
	m := sp.m
	if m == nil {
		return
	}
	m.Step(sp.now(), ev)
	rd := m.Ready()
	sp.ask(rd.Request)
	if sp.m != m {
		return
	}
	if !m.Over() {
		sp.wake(rd.Wake)
		return
	}
	s, err := sp.c.sim, m.Err()
	s.tell("announcer %d: %s has %v%s", sp.c.id, sp.data, m.Outcome(), because(err))
	if err != nil && !errors.Is(err, value.ErrBidGone) && !errors.Is(err, value.ErrNewer) {
		s.fail("Announcements", "announcer %d cannot announce: %v", sp.c.id, err)
		return
	}
	s.see(announced{sp, m, sp.data, false})
	sp.m = nil
}

// announcers returns all announcers of the run.
func (s *Sim) announcers() (all []*announcer) {
	for _, c := range s.clients {
		if p, ok := c.player.(parts); ok {
			if sp, ok := p[len(p)-1].(*announcer); ok {
				all = append(all, sp)
			}
		}
	}
	return all
}

// allInformed says who has not yet seen the last configuration or the current leader. It
// returns an empty text if there is nobody.
func (s *Sim) allInformed() string {
	all := s.announcers()
	if len(all) == 0 {
		return ""
	}
	text, stat := s.content(configPath)
	config, _ := value.ParseAnnouncement(text, stat)
	notice, stat := s.content(electionPath + "/LEADER")
	leader := claim.NoticeOf(notice, stat)
	if leader.Token == 0 {
		return "nobody has made himself known as the leader"
	}
	for _, sp := range all {
		switch {
		case sp.m != nil:
			return fmt.Sprintf("announcer %d announces", sp.c.id)
		case string(sp.config.Data) != string(config.Data) || sp.config.Version != config.Version:
			return fmt.Sprintf("announcer %d knows %q, and %q stands there", sp.c.id, sp.config.Data, config.Data)
		case sp.leader != leader:
			return fmt.Sprintf("announcer %d knows %+v, and %+v leads", sp.c.id, sp.leader, leader)
		}
	}
	return ""
}
