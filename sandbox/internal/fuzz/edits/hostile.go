// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package edits

import "strings"

// alike replaces Latin letters with Cyrillic letters that look the same.
var alike = strings.NewReplacer("a", "а", "c", "с", "e", "е", "o", "о", "p", "р", "x", "х")

// hostile returns strings that are designed to break programs. Some of them are invalid nearly
// everywhere, others are variants of the current value.
func hostile(now string) []value {
	return []value{
		{Hostile, "a blank", " "},
		{Hostile, "upper case", strings.ToUpper(now) + "X"},
		{Hostile, "lower case", strings.ToLower(now)},
		{Hostile, "with blanks around", "  " + now + "  "},
		{Hostile, "in another script", "水位-潮汐-🌊"},
		{Hostile, "with letters that look alike", alike.Replace(now)},
		{Hostile, "written from right to left", "\u202e" + now},
		{Hostile, "with a line end", now + "\n"},
		{Hostile, "with another line", now + "\nkind: Other"},
		{Hostile, "with control characters", "a\x00\x1b[31m\x07"},
		{Hostile, "a path", "../../etc/passwd"},
		{Hostile, "a template", "${x}{{.x}}%s%n$(x)`x`"},
		{Hostile, "a number", "-1"},
		{Hostile, "a truth value in a text", "true"},
		{Hostile, "with a slash", now + "/" + now},
		{Hostile, "huge", strings.Repeat("x", mostText)},
		{Hostile, "huge in bytes", strings.Repeat("水", mostText)},
	}
}
