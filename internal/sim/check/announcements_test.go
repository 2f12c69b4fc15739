package check

import (
	"bellwether/internal/claim"
	"bellwether/internal/claim/value"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/wire"
)

// brokenAnnouncements are sequences of observations that break the rule of announcements.
var brokenAnnouncements = []broken{
	{"an older leader's word in the place of a later one's", announcementRule, func(_ *History) []any {
		return []any{says(a, 5, "x"), says(a, 4, "y")}
	}},
	{"a word announced twice", announcementRule, func(_ *History) []any {
		return []any{says(a, 5, "x"), says(a, 5, "x")}
	}},
	{"a word that was said not to be announced", announcementRule, func(_ *History) []any {
		return []any{Announced{Data: "x", Outcome: withdrawn(announcing()).Outcome()}, says(a, 5, "x")}
	}},
	{"a word that was said to be, and is not", announcementRule, func(_ *History) []any {
		return []any{Announced{Data: "x", Outcome: done(announcing()).Outcome()}}
	}},
	{"a word that nobody said", announcementRule, func(_ *History) []any {
		return []any{ConfigurationSeen{2, 1, value.Announcement{Token: 5, Data: []byte("x")}}}
	}},
	{"a follower that goes back to an older leader", announcementRule, func(_ *History) []any {
		return []any{says(a, 4, "x"), says(a, 5, "y"), ConfigurationSeen{1, 1, value.Announcement{Token: 5, Version: 1, Data: []byte("y")}},
			ConfigurationSeen{2, 1, value.Announcement{Token: 4, Data: []byte("x")}}, ConfigurationSeen{1, 1, value.Announcement{Token: 4, Data: []byte("x")}}}
	}},
	{"a follower that goes back to an older word", announcementRule, func(_ *History) []any {
		return []any{says(a, 5, "x"), says(a, 5, "y"), ConfigurationSeen{1, 1, value.Announcement{Token: 5, Version: 1, Data: []byte("y")}},
			ConfigurationSeen{1, 1, value.Announcement{Token: 5, Data: []byte("x")}}}
	}},
	{"a leader that never was", announcementRule, func(_ *History) []any {
		return []any{LeaderSeen{2, 1, claim.Notice{}}, LeaderSeen{2, 1, claim.Notice{Token: 5}}}
	}},
	{"a follower that goes back to a former leader", announcementRule, func(_ *History) []any {
		leads := func(token wire.Zxid) Committed {
			return wrote(a, 1, &record.CreateTxn{Path: LeaderPath, Data: claim.Notice{Bid: "b", Token: token}.Encode()})
		}
		return []any{leads(4), leads(5), LeaderSeen{1, 1, claim.Notice{Token: 5}}, LeaderSeen{1, 1, claim.Notice{}}, LeaderSeen{1, 1, claim.Notice{Token: 4}}}
	}},
}

func announcementRule(*History) Checker { return newAnnouncements() }

func announcing() Operation { return value.NewAnnounce(value.AnnounceConfig{Session: 1}) }

// says returns the transaction by which a leader writes an announcement.
func says(v ensemble.ServerID, token wire.Zxid, data string) Committed {
	text := value.Announcement{Token: token, Data: []byte(data)}.Text("/bid")
	return wrote(v, 1, &record.SetDataTxn{Path: ConfigPath, Data: text})
}
