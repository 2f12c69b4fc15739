package shell

import (
	"fmt"
	"strings"

	"bellwether/wire"
)

// permLetters maps letters to permissions, in the order of ZooKeeper's CLI.
var permLetters = []struct {
	letter byte
	perm   int32
}{
	{'c', wire.PermCreate}, {'d', wire.PermDelete}, {'r', wire.PermRead},
	{'w', wire.PermWrite}, {'a', wire.PermAdmin},
}

// permText returns permissions as letters.
func permText(perms int32) string {
	var b strings.Builder
	for _, p := range permLetters {
		if perms&p.perm != 0 {
			b.WriteByte(p.letter)
		}
	}
	return b.String()
}

// parsePerms parses letters in the form of permText, in any order.
func parsePerms(s string) (int32, error) {
	var perms int32
next:
	for i := range len(s) {
		for _, p := range permLetters {
			if s[i] == p.letter {
				perms |= p.perm
				continue next
			}
		}
		return 0, fmt.Errorf("%q is not a permission: use letters of cdrwa", s[i])
	}
	if perms == 0 {
		return 0, fmt.Errorf("no permissions: use letters of cdrwa")
	}
	return perms, nil
}

const x509Prefix = "x509:"

// parseACL parses comma-separated entries scheme:id:perms. An id may contain colons: the
// first and the last colon of an entry are the separators. An id of the scheme x509 may contain
// commas, as most subjects of certificates do.
func parseACL(s string) ([]wire.ACL, error) {
	var list []wire.ACL
	for rest, more := s, true; more; {
		var entry string
		entry, rest, more = strings.Cut(rest, ",")
		for more && strings.HasPrefix(entry, x509Prefix) && strings.LastIndexByte(entry, ':') < len(x509Prefix) {
			var part string
			part, rest, more = strings.Cut(rest, ",")
			entry += "," + part
		}
		first, last := strings.IndexByte(entry, ':'), strings.LastIndexByte(entry, ':')
		if first == last {
			return nil, usagef("ACL entry %q: want scheme:id:perms, as in world:anyone:cdrwa", entry)
		}
		perms, err := parsePerms(entry[last+1:])
		if err != nil {
			return nil, usagef("ACL entry %q: %v", entry, err)
		}
		list = append(list, wire.ACL{Perms: perms, ID: wire.ID{Scheme: entry[:first], ID: entry[first+1 : last]}})
	}
	return list, nil
}
