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

// plannedFile is the name of the file that lists a directory's planned cases.
const plannedFile = "planned.json"

// part is the subset of the cases that --shard assigns to a results directory. Number is the number
// of the part, counted from 1, and Parts is the number of parts; both are 0 if the directory
// contains all cases. IDs lists the IDs of the planned cases.
type part struct {
	Number int      `json:"part,omitempty"`
	Parts  int      `json:"parts,omitempty"`
	IDs    []string `json:"cases"`
	// Scope describes the objects and fields by which the cases are judged.
	Scope *Scope `json:"scope,omitempty"`
}

// Plan stores the IDs of this process's cases: the part with the given number, out of `of` parts.
func (b *Book[F]) Plan(number, of int, ids []string) error {
	b.Planned = len(ids)
	b.part.Number, b.part.Parts, b.part.IDs = number, of, ids
	return b.keepPart()
}

// Judge stores the objects and fields by which the cases are judged.
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

// readPart reads the part stored in a directory. It returns an empty part if the run was
// interrupted before its cases were planned.
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

// InPart reports whether a case belongs to part `number` of `of` parts. The result depends only on
// the case's name, so that all machines agree even if their baselines differ slightly.
func InPart(name string, number, of int) bool {
	if of <= 1 {
		return true
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return int(sum.Sum32()%uint32(of)) == number-1
}

// parts holds the parts of the directories to merge.
type parts []part

// left returns the number of planned cases that are missing in `played`, the set of completed case
// IDs.
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

// missing returns the parts of a run divided by --shard for which no directory was given, as
// NUMBER/PARTS, such as 2/4. If any directory holds all cases, no part is missing.
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

// weight returns the rank of a case's record, for cases that have a record in several directories.
// A confirmed finding ranks highest, and a case without a verdict ranks lowest.
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
