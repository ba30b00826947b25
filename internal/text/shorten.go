// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text formats texts for people: it bounds the length of foreign texts, such as error
// messages, names and annotations, and formats durations.
package text

import (
	"strings"
	"unicode/utf8"
)

const ellipsis = "…"

// Shorten returns the text if it has at most limit bytes, else its beginning with an ellipsis,
// limit bytes in all. The result is valid UTF-8.
func Shorten(text string, limit int) string {
	// A text may be megabytes long: only its beginning is read.
	long := len(text) > limit
	if long {
		text = text[:limit]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !long && len(text) <= limit {
		return text
	}
	// A replacement character may be shorter than the invalid bytes.
	end := min(limit-len(ellipsis), len(text))
	for end > 0 && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// Cut returns the first bytes of a text up to the limit. A shortened text is copied, so that the
// original, which tenants can make as long as they like, can be freed.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.Clone(text[:limit])
}
