// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text formats strings for people. It shortens strings from other sources, such as error
// messages, names and annotations, and formats durations.
package text

import (
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Shorten returns the given string if it has at most limit bytes. Otherwise it returns the
// beginning of the string and an ellipsis, at most limit bytes in total. The result is valid UTF-8.
func Shorten(text string, limit int) string {
	long := len(text) > limit
	if !long && utf8.ValidString(text) {
		return text // This check is fast, and most strings are short and valid.
	}
	// The string may be megabytes long, so only its beginning is processed.
	if long {
		text = text[:limit]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !long && len(text) <= limit {
		return text
	}
	// The replacement character may be shorter than the invalid bytes that it replaces, so the text
	// may now be shorter than limit.
	end := min(limit-len(ellipsis), len(text))
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// Cut returns at most the first limit bytes of a string. A shortened string is a copy, so that the
// memory of the original string, whose length tenants control, can be freed.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.Clone(text[:limit])
}
