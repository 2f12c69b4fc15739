package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/ensemble"
	"bellwether/internal/member"
	"bellwether/wire"
	"bellwether/zk"
)

// memberChange is one run of a command that changes the members.
type memberChange struct {
	*members
	zc    *zk.Client
	now   *ensemble.Membership // the present members, as far as this command knows
	state string               // what has been done, and how to go on
}

// memberEvent is something that has happened, for programs.
type memberEvent struct {
	Event    string              `json:"event"`
	Server   ensemble.ServerID   `json:"server"`
	Address  string              `json:"address,omitempty"`
	Behind   *int64              `json:"behind,omitempty"`
	MS       *int64              `json:"ms,omitempty"`
	Version  string              `json:"version,omitempty"` // of the members
	Voters   []ensemble.ServerID `json:"voters,omitempty"`
	Survives *int                `json:"survives,omitempty"`
	Problems []member.Problem    `json:"problems,omitempty"`
	text     string
}

func (c *memberChange) report(e memberEvent) error {
	if c.json() {
		return printJSON(c.out, e)
	}
	_, err := fmt.Fprintln(c.out, e.text)
	return err
}

// change runs f after the members were read and compared with --version. If f is interrupted, it says what state it leaves.
func (m *members) change(cmd *cobra.Command, f func(ctx context.Context, c *memberChange) error) error {
	if m.stepMax <= 0 {
		return usagef("--timeout %v: want more than 0", m.stepMax)
	}
	want, err := (&reconfiguration{version: m.version}).check()
	if err != nil {
		return err
	}
	return m.run(cmd, func(ctx context.Context, zc *zk.Client) error {
		c := &memberChange{members: m, zc: zc, state: "nothing was changed"}
		err := c.begin(ctx, want)
		if err == nil {
			err = f(ctx, c)
		}
		if err != nil && ctx.Err() != nil {
			c.say(c.state)
		}
		return err
	})
}

func (c *memberChange) begin(ctx context.Context, want int64) (err error) {
	if c.now, err = readMembers(ctx, c.zc); err != nil {
		return err
	}
	if v := c.now.Version(); want != -1 && v != want {
		return fmt.Errorf("the members have version %x, and --version is %x: nothing was changed; see member list", v, want)
	}
	return nil
}

// add makes a server an observer, waits until it has caught up, and gives it a vote.
func (c *memberChange) add(ctx context.Context, s ensemble.Server, at place) error {
	present, listed := c.now.Server(s.ID)
	voter := s.Role == ensemble.Participant
	switch {
	case listed && (!slices.Equal(present.Addresses, s.Addresses) || present.Client != s.Client):
		return twoWithOneID(present, s)
	case listed && present.Role == ensemble.Participant && !voter:
		return fmt.Errorf("server %d is a participant: member demote %d makes it an observer", s.ID, s.ID)
	case listed && (!voter || present.Role == ensemble.Participant):
		return c.report(memberEvent{Event: "nothing", Server: s.ID, text: fmt.Sprintf("server %d is %s already", s.ID, withArticle(present.Role))})
	}
	d := c.now.Definition()
	d.Servers = append(slices.DeleteFunc(d.Servers, func(o ensemble.Server) bool { return o.ID == s.ID }), s)
	if voter {
		if err := at.put(&d, s.ID); err != nil {
			return err
		}
	}
	if !listed {
		if why := member.WithoutClientPort(c.now, s); why != nil {
			return c.refuse(s.ID, why)
		}
		if err := c.awaitNewcomer(ctx, s); err != nil {
			return err
		}
	}
	return c.follow(ctx, s, d)
}

// follow carries out all steps to a membership in which the server s differs. Each step is checked once more before it.
func (c *memberChange) follow(ctx context.Context, s ensemble.Server, d ensemble.Definition) error {
	v, err := c.look(ctx, c.now, []ensemble.Server{s})
	if err != nil {
		return err
	}
	goal, err := ensemble.New(d)
	if err != nil {
		return c.refuse(s.ID, []member.Problem{{What: err.Error(), Do: "choose another line"}})
	}
	p := member.New(c.now, goal, v)
	if !p.Safe() {
		return c.refuse(s.ID, p.AllProblems())
	}
	for _, step := range p.Steps {
		if step.Kind == member.CatchUp {
			err = c.catchUp(ctx, s)
		} else {
			err = c.single(ctx, step.Kind, s.ID, step.New.WithVersion(c.now.Version()), s)
		}
		if err != nil {
			return err
		}
		c.state = fmt.Sprintf("the members are those of version %s; the same command goes on, and bellwether member remove %d undoes it", hexVersion(c.now), s.ID)
	}
	return nil
}

func withArticle(r ensemble.Role) string {
	if r == ensemble.Observer {
		return "an observer"
	}
	return "a participant"
}

// pollEach is the time between two looks at the servers.
const pollEach = 100 * time.Millisecond

// awaitNewcomer gives a server that was just started the connect timeout to answer. What is wrong with it
// then is found by the plan.
func (c *memberChange) awaitNewcomer(ctx context.Context, s ensemble.Server) error {
	limited, cancel := context.WithTimeout(ctx, c.app.timeout)
	defer cancel()
	for waits := false; ; waits = true {
		v, err := c.ask(ctx, c.now, []ensemble.Server{s})
		if err != nil {
			return err
		}
		seen := v.Servers[s.ID]
		if seen.Error == "" && seen.HasID && seen.ID != s.ID {
			return nil // another server
		}
		if seen.Error == "" && seen.Role != "" {
			return c.report(memberEvent{Event: "answers", Server: s.ID, Address: seen.Address, text: fmt.Sprintf("server %d answers at %s: %s, version %s", s.ID, seen.Address, seen.Role, seen.Version)})
		}
		if !waits {
			address := v.Servers[s.ID].Address
			if err := c.report(memberEvent{Event: "waits", Server: s.ID, Address: address, text: fmt.Sprintf("server %d does not serve at %s yet; it gets %v", s.ID, address, c.app.timeout)}); err != nil {
				return err
			}
		}
		if !pause(limited) {
			return ctx.Err()
		}
	}
}

// pause waits for pollEach, and reports whether the context still lasts.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(pollEach):
		return true
	case <-ctx.Done():
		return false
	}
}

// catchUp waits until a server has what the leader has, and reports how far it is from time to time.
func (c *memberChange) catchUp(ctx context.Context, s ensemble.Server) error {
	const reportEach = 2 * time.Second
	began, reported, right := time.Now(), time.Now(), time.Now()
	limited, cancel := context.WithTimeout(ctx, c.stepMax)
	defer cancel()
	for {
		v, err := c.ask(ctx, c.now, []ensemble.Server{s})
		if err != nil {
			return err
		}
		seen := v.Servers[s.ID]
		ms := time.Since(began).Milliseconds()
		if v.Counts(s.ID) && inRole(c.now, s.ID, seen.Role) {
			return c.report(memberEvent{Event: "caught_up", Server: s.ID, Behind: &seen.Behind, MS: &ms, text: fmt.Sprintf("server %d has caught up: %d transactions behind the leader, after %d ms", s.ID, seen.Behind, ms)})
		}
		if !c.inWrongRole(s.ID, &v) {
			right = time.Now()
		}
		if time.Since(right) >= max(c.app.timeout, wrongRoleMin) {
			return fmt.Errorf("server %d has caught up, but goes on as a follower although it is to be an observer first: it has probably reconfigEnabled=false, so that it does not learn its role; set reconfigEnabled=true in its zoo.cfg and restart it\n%s", s.ID, c.state)
		}
		if time.Since(reported) >= reportEach {
			reported = time.Now()
			if err := c.report(waiting(s.ID, &seen, ms)); err != nil {
				return err
			}
		}
		if !pause(limited) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("server %d has not caught up within %v (%s)\n%s", s.ID, c.stepMax, waiting(s.ID, &seen, ms).text, c.state)
		}
	}
}

// wrongRoleMin is how long a server at least keeps its former role before that counts as an error.
const wrongRoleMin = 10 * time.Second

// inWrongRole reports whether a server that is to observe has caught up as a follower.
func (c *memberChange) inWrongRole(id ensemble.ServerID, v *member.View) bool {
	return v.Counts(id) && v.Servers[id].Role == "follower" && !inRole(c.now, id, "follower")
}

// inRole reports whether a server has the role that the members give it. A server that is no member follows. After a
// change a server may still have its former role, which ends soon.
func inRole(now *ensemble.Membership, id ensemble.ServerID, role string) bool {
	s, listed := now.Server(id)
	return (listed && s.Role == ensemble.Observer) == (role == "observer")
}

func waiting(id ensemble.ServerID, seen *member.Seen, ms int64) memberEvent {
	e := memberEvent{Event: "waits", Server: id, MS: &ms}
	switch {
	case seen.Error != "":
		e.text = fmt.Sprintf("server %d does not answer: %s", id, seen.Error)
	case seen.Role == "" || seen.Behind < 0:
		e.text = fmt.Sprintf("server %d does not follow the leader yet", id)
	default:
		e.Behind = &seen.Behind
		e.text = fmt.Sprintf("server %d is %d transactions behind the leader", id, seen.Behind)
	}
	return e
}

// single checks a change that is one step, and carries it out.
func (c *memberChange) single(ctx context.Context, kind member.Kind, id ensemble.ServerID, goal *ensemble.Membership, newcomers ...ensemble.Server) error {
	v, err := c.look(ctx, c.now, newcomers)
	if err != nil {
		return err
	}
	p := member.Single(kind, id, c.now, goal, v)
	if !p.Safe() {
		return c.refuse(id, p.AllProblems())
	}
	return c.apply(ctx, &p.Steps[0])
}

// refuse reports why a change is refused.
func (c *memberChange) refuse(id ensemble.ServerID, all []member.Problem) error {
	if c.json() {
		if err := printJSON(c.out, memberEvent{Event: "refused", Server: id, Problems: all}); err != nil {
			return err
		}
		return &StatusError{Status: ExitFailed}
	}
	var lines []string
	for _, p := range all {
		lines = append(lines, "refused: "+p.What, "    do: "+p.Do)
	}
	return &StatusError{ExitFailed, errors.New(strings.Join(lines, "\n"))}
}

// apply carries out a step, and waits until the new members serve.
func (c *memberChange) apply(ctx context.Context, s *member.Step) error {
	before := c.state
	c.state = fmt.Sprintf("it is not known whether this was done: %s; member list shows it, and the same command goes on", s.Text)
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.stepMax)
	defer cancel()
	text, err := c.request(limited, s)
	if err != nil {
		if refused(err) {
			c.state = before
		}
		return c.requestFailed(err, s)
	}
	if c.now, err = ensemble.Parse(text); err != nil {
		return fmt.Errorf("the server answered with a list of members that cannot be read: %w", err)
	}
	c.state = s.Text + ": done"
	ms := time.Since(began).Milliseconds()
	survives := c.settle(limited, s)
	e := memberEvent{Event: pastOf[s.Kind], Server: s.Server, MS: &ms, Version: hexVersion(c.now), Voters: c.now.Voters(), Survives: &survives,
		text: fmt.Sprintf("%s in %d ms; voters %s, members version %s; %s", fmt.Sprintf(pastText[s.Kind], s.Server), ms, voterText(c.now), hexVersion(c.now), survivesText(survives))}
	if err := c.report(e); err != nil || survives >= 0 {
		return err
	}
	return fmt.Errorf("the change was made, but this command does not see a leader and a quorum of the new members: see member list; --address ID=HOST:PORT names where a server answers if not at the client address in its line")
}

var (
	pastOf   = map[member.Kind]string{member.Join: "added", member.Admit: "admitted", member.Promote: "promoted", member.Demote: "demoted", member.Remove: "removed"}
	pastText = map[member.Kind]string{
		member.Join: "added server %d as an observer", member.Admit: "added server %d as a participant", member.Promote: "promoted server %d to a participant",
		member.Demote: "demoted server %d to an observer", member.Remove: "removed server %d, which goes on without a vote until you stop it,",
	}
)

// settle waits until the members serve, and returns how many of them may fail. It gives the servers that have changed
// their roles the connect timeout to follow again.
func (c *memberChange) settle(ctx context.Context, s *member.Step) int {
	for end := time.Now().Add(c.app.timeout); ; {
		v, err := c.ask(ctx, c.now, nil)
		survives := member.Tolerates(c.now, v.Counts)
		_, listed := c.now.Server(s.Server)
		settled := survives >= s.SurvivesAfter && (!listed || inRole(c.now, s.Server, v.Servers[s.Server].Role))
		blind := err == nil && v.Leaderless(c.now) != nil // waiting does not help
		if err == nil && settled || (survives >= 0 || blind) && time.Now().After(end) || !pause(ctx) {
			return survives
		}
	}
}

// request sends the reconfiguration of a step, and returns the new members. For the connect timeout it tries again if the
// leader does not yet count servers that follow it, or if the answer is lost. A repetition does nothing twice, because
// the request names the version that it changes.
func (c *memberChange) request(ctx context.Context, s *member.Step) (string, error) {
	var joining, leaving, list string
	switch line, _ := s.New.Server(s.Server); {
	case s.Old.Hierarchical():
		list = strings.ReplaceAll(s.New.FileText(false), "\n", ",")
	case s.Kind == member.Remove:
		leaving = strconv.FormatInt(int64(s.Server), 10)
	default:
		joining = line.Line()
	}
	for end, lost := time.Now().Add(c.app.timeout), false; ; {
		text, _, err := c.zc.Reconfig(ctx, joining, leaving, list, s.Old.Version())
		lost = lost || errors.Is(err, zk.ErrConnectionLoss)
		if lost && err != nil && ctx.Err() == nil {
			if now, unread := readMembers(ctx, c.zc); unread == nil && now.SameMembers(s.New) {
				return now.String(), nil
			}
		}
		again := errors.Is(err, wire.ErrNewConfigNoQuorum) || errors.Is(err, zk.ErrConnectionLoss) || lost && errors.Is(err, wire.ErrReconfigInProgress)
		if !again || time.Now().After(end) || !pause(ctx) {
			return string(text), err
		}
	}
}

// refused reports whether an error says that nothing was changed.
func refused(err error) bool {
	var code wire.Code
	return errors.As(err, &code) && !errors.Is(err, zk.ErrConnectionLoss)
}

// requestFailed explains why a server has refused a change.
func (c *memberChange) requestFailed(err error, s *member.Step) error {
	for _, r := range []struct {
		code wire.Code
		text string
	}{
		{wire.ErrNoAuth, "the client may not write " + configNode + ": use --auth digest:super:PASSWORD, or a login that the ACL of the znode allows"},
		{wire.ErrReconfigDisabled, "the servers do not allow changes of their members: set reconfigEnabled=true on all of them"},
		{wire.ErrReconfigInProgress, "another change is in progress: try again when it is committed"},
		{wire.ErrBadVersion, "the members have changed since this command read them: see member list, and try again"},
		{wire.ErrNewConfigNoQuorum, "the leader counts no quorum of the new members that follow it and are up to date: see member list"},
		{wire.ErrBadArguments, "the change breaks a rule, which the log of the leader names"},
	} {
		if errors.Is(err, r.code) {
			return fmt.Errorf("refused by the server: %s: %s", s.Text, r.text)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v\n%s", c.stepMax, c.state)
	}
	if errors.Is(err, zk.ErrConnectionLoss) {
		return fmt.Errorf("%w\n%s", err, c.state)
	}
	return err
}
