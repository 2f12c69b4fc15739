package ensemble

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// KeyError says which line of a configuration text is wrong, and why. Key is empty if
// each line is right, but not all of them together.
type KeyError struct {
	Line       int // counted from 1; 0 if no single line is wrong
	Key, Value string
	Reason     string
}

func (e *KeyError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s=%s: %s", e.Line, e.Key, e.Value, e.Reason)
}

// IsMemberKey reports whether key defines servers, groups or weights, so that it
// belongs to the membership and not to the other settings.
func IsMemberKey(key string) bool {
	return strings.HasPrefix(key, "server.") || strings.HasPrefix(key, "group") || strings.HasPrefix(key, "weight")
}

// Parse parses the configuration text that servers exchange and that is in
// /zookeeper/config. Lines may come in any order; a missing version means 0. Errors are
// [KeyError] or [SyntaxError].
func Parse(text string) (*Membership, error) {
	props, err := ReadProperties(text)
	if err != nil {
		return nil, err
	}
	return FromProperties(props)
}

// FromProperties makes a Membership from the lines server.N, group.N, weight.N and
// version. Any other key is an error, so the caller must select the lines of zoo.cfg with
// [IsMemberKey] first. If a key occurs more than once the last line counts.
func FromProperties(props []Property) (*Membership, error) {
	d := Definition{Groups: map[GroupID][]ServerID{}, Weights: map[ServerID]int64{}}
	last := make(map[string]int, len(props))
	for i, p := range props {
		last[p.Key] = i
	}
	for i, p := range props {
		if last[p.Key] != i {
			continue
		}
		if err := d.add(p); err != nil {
			return nil, &KeyError{Line: p.Line, Key: p.Key, Value: p.Value, Reason: err.Error()}
		}
	}
	m, err := New(d)
	if err != nil {
		return nil, &KeyError{Reason: err.Error()}
	}
	return m, nil
}

// add adds one line to the definition.
func (d *Definition) add(p Property) error {
	name, number, _ := strings.Cut(p.Key, ".")
	switch {
	case p.Key == "version":
		v, err := strconv.ParseInt(p.Value, 16, 64)
		if err != nil || v < 0 {
			return errors.New("is not a hexadecimal version")
		}
		d.Version = v
		return nil
	case name == "server":
		return d.addServer(number, p.Value)
	case name == "group":
		return d.addGroup(number, p.Value)
	case name == "weight":
		return d.addWeight(number, p.Value)
	}
	return errors.New("unrecognised; allowed are server.N, group.N and weight.N")
}

// observerWithoutID is the id that observers without an id of their own send.
const observerWithoutID = math.MaxInt64

func (d *Definition) addServer(number, value string) error {
	id, err := parseID("server", number)
	if err != nil {
		return err
	}
	if id == observerWithoutID {
		return fmt.Errorf("server %d is an observer without an id for other servers; use an id from 0 to %d", id, idDocumented)
	}
	s, err := ParseServer(ServerID(id), value)
	if err != nil {
		return err
	}
	d.Servers = append(d.Servers, s)
	return nil
}

func (d *Definition) addGroup(number, value string) error {
	id, err := parseID("group", number)
	if err != nil {
		return err
	}
	if _, ok := d.Groups[GroupID(id)]; ok {
		return fmt.Errorf("group %d is defined twice", id)
	}
	var members []ServerID
	for text := range strings.SplitSeq(value, ":") {
		sid, err := parseID("member", text)
		if err != nil {
			return err
		}
		members = append(members, ServerID(sid))
		if len(members) > serversMax {
			return fmt.Errorf("more than %d members", serversMax)
		}
	}
	d.Groups[GroupID(id)] = members
	return nil
}

func (d *Definition) addWeight(number, value string) error {
	id, err := parseID("server", number)
	if err != nil {
		return err
	}
	if _, ok := d.Weights[ServerID(id)]; ok {
		return fmt.Errorf("the weight of server %d is given twice", id)
	}
	w, err := strconv.ParseInt(value, 10, 64)
	if err != nil || w < 0 || w > weightMax {
		return fmt.Errorf("a weight is a number from 0 to %d", int64(weightMax))
	}
	d.Weights[ServerID(id)] = w
	return nil
}

// parseID parses the number of a server or group.
func parseID(what, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%s %q is not a number of 0 or more", what, text)
	}
	return id, nil
}
