// Asks coredns/corefile-migration, which kubeadm uses: one JSON question a line in, one JSON answer a line out.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/coredns/corefile-migration/migration"
)

type question struct{ From, To, Text string }

type answer struct {
	Default     bool     `json:"default"`
	Migrated    string   `json:"migrated"`
	Unsupported []string `json:"unsupported"`
	Changes     []string `json:"changes"`
	Error       string   `json:"error"`
}

func told(notices []migration.Notice) []string {
	texts := []string{}
	for _, notice := range notices {
		texts = append(texts, notice.ToString())
	}
	return texts
}

func ask(q question) (a answer) {
	a.Default = migration.Default("", q.Text)
	var err error
	if a.Migrated, err = migration.Migrate(q.From, q.To, q.Text, false); err != nil {
		a.Error = err.Error()
	}
	unsupported, _ := migration.Unsupported(q.From, q.To, q.Text)
	changes, _ := migration.Deprecated(q.From, q.To, q.Text)
	a.Unsupported, a.Changes = told(unsupported), told(changes)
	return a
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			panic(err)
		}
		if err := out.Encode(ask(q)); err != nil {
			panic(err)
		}
	}
}
