// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// sequence is the form on the capacity page for successive losses of nodes, with the resulting
// effects.
type sequence struct {
	// Lose and Cordon are the nodes to lose, and the nodes to treat as cordoned, as the user
	// entered them.
	Lose, Cordon string
	Mistake      string
	Losses       []lossRow
	// Command is the equivalent kubectl tide command.
	Command string
}

// mostLosses is the maximum number of successive losses, because evaluating each takes as long as
// building the cluster's model. mostLost is the maximum number of node names in each loss and in
// the field "cordon".
const (
	mostLosses = 5
	mostLost   = 100
)

// sequenceOf returns the form, filled from the query parameters "lose" and "cordon", with the
// effects of the losses. The effects are missing if room (the free capacity) is nil, or if the form
// is empty.
func sequenceOf(a address, room *view.Room, l links) *sequence {
	s := &sequence{Lose: strings.TrimSpace(a.get("lose")), Cordon: strings.TrimSpace(a.get("cordon"))}
	if room == nil || s.Lose == "" && s.Cordon == "" {
		return s
	}
	ask, command, err := s.read(room)
	if err != nil {
		s.Mistake = err.Error()
		return s
	}
	s.Command = l.command(command)
	for _, loss := range room.InSequence(ask) {
		s.Losses = append(s.Losses, lossRowOf(loss))
	}
	return s
}

// read parses the nodes that the user entered on the capacity page. Commas or spaces separate nodes
// that are lost at the same time, and semicolons separate successive losses. command holds the
// arguments of the equivalent kubectl tide command.
func (s *sequence) read(room *view.Room) (ask *view.Sequence, command []string, err error) {
	if s.Lose == "" {
		return nil, nil, errors.New("write the nodes that are lost first")
	}
	known := map[string]bool{}
	for _, node := range room.Nodes {
		known[node.Name] = true
	}
	names := func(text string) ([]string, error) {
		list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		if len(list) > mostLost {
			return nil, fmt.Errorf("write at most %d nodes", mostLost)
		}
		for _, name := range list {
			if !known[name] {
				return nil, fmt.Errorf("there is no node %q", name)
			}
		}
		slices.Sort(list)
		return slices.Compact(list), nil
	}
	ask = &view.Sequence{}
	if ask.Cordoned, err = names(s.Cordon); err != nil {
		return nil, nil, err
	}
	command, lost := []string{"pools", "loss"}, map[string]bool{}
	for i, text := range strings.Split(s.Lose, ";") {
		list, err := names(text)
		switch {
		case err != nil:
			return nil, nil, err
		case i >= mostLosses:
			return nil, nil, fmt.Errorf("write at most %d losses", mostLosses)
		case len(list) == 0 && i > 0:
			continue // The user has not written the next loss yet.
		case len(list) == 0:
			return nil, nil, errors.New("write the nodes that are lost first")
		}
		for _, name := range list {
			if lost[name] {
				return nil, nil, fmt.Errorf("node %q is lost already", name)
			}
			lost[name] = true
		}
		command = append(command, map[bool]string{true: "--node", false: "--then"}[i == 0], strings.Join(list, ","))
		ask.Steps = append(ask.Steps, list)
	}
	if len(ask.Cordoned) > 0 {
		command = append(command, "--cordon", strings.Join(ask.Cordoned, ","))
	}
	return ask, command, nil
}
