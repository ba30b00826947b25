// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// plannedFile is the file with the part of the cases that is played in a directory.
const plannedFile = "planned.json"

// part is the part of the cases that is played in a directory: part Number of Parts, from 1 on, or 0 of 0 for
// all. IDs has its cases.
type part struct {
	Number int      `json:"part,omitempty"`
	Parts  int      `json:"parts,omitempty"`
	IDs    []string `json:"cases"`
	// Scope has the objects and fields by which the cases are judged.
	Scope *Scope `json:"scope,omitempty"`
}

// Plan writes the cases of this part: the given number of several parts.
func (b *Book[F]) Plan(number, of int, ids []string) error {
	b.Planned = len(ids)
	b.part.Number, b.part.Parts, b.part.IDs = number, of, ids
	return b.keepPart()
}

// Judge writes the scope by which the cases are judged.
func (b *Book[F]) Judge(by *Scope) error {
	b.Scope, b.part.Scope = by, by
	return b.keepPart()
}

func (b *Book[F]) keepPart() error {
	text, err := json.Marshal(b.part)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, plannedFile), text, 0o600)
}

// readPart reads the part of a directory; it is empty if the run was interrupted before the cases were known.
func readPart(dir string) (p part, err error) {
	file := filepath.Join(dir, plannedFile)
	text, err := os.ReadFile(filepath.Clean(file))
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("%s is damaged: play again in another directory", file)
	}
	return p, nil
}

// InPart reports whether a case belongs to a part. This depends on its name only, so that all machines agree,
// even if their baselines differ slightly.
func InPart(name string, number, of int) bool {
	if of <= 1 {
		return true
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return int(sum.Sum32()%uint32(of)) == number-1
}

// parts are the parts of several directories.
type parts []part

// left returns the number of cases that were not played.
func (all parts) left(played map[string]bool) int {
	left := map[string]bool{}
	for _, p := range all {
		for _, id := range p.IDs {
			if !played[id] {
				left[id] = true
			}
		}
	}
	return len(left)
}

// missing returns the parts without a directory, in the notation of --shard. A directory with all cases
// misses none.
func (all parts) missing() []string {
	var missing []string
	there, most := map[int]bool{}, 0
	for _, p := range all {
		if p.Parts <= 1 {
			return nil
		}
		there[p.Number], most = true, max(most, p.Parts)
	}
	for number := 1; number <= most; number++ {
		if !there[number] {
			missing = append(missing, fmt.Sprintf("%d/%d", number, most))
		}
	}
	return missing
}

// weight ranks the outcomes of a case that was played in several directories: a finding is highest, and an
// outcome that could not be judged lowest.
func (p *Played) weight() int {
	switch {
	case p.Found && !p.Unsure:
		return 4
	case p.Found:
		return 3
	case p.Error != "":
		return 0
	case p.Outcome == NotReached:
		return 1
	}
	return 2
}
