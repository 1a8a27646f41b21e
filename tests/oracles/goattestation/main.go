// What google/go-attestation makes of TPMs, for comparison with slipway.credentials.tpm.
//
// "judge" reads a registration a line, the endorsement key as PEM and the parameters of the attestation key, and prints its
// refusal or a challenge with the answer that it wants.  "host" is a registering host: it takes its keys from the TPM at a
// Unix socket, prints them, and then activates a challenge a line.
package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"

	"github.com/google/go-attestation/attest"
)

type registration struct {
	EK   string
	AK   attest.AttestationParameters
	Hash string `json:",omitempty"`
}

type outcome struct {
	Refused string                      `json:",omitempty"`
	EC      *attest.EncryptedCredential `json:",omitempty"`
	Answer  []byte                      `json:",omitempty"`
}

type socket struct{ net.Conn }

func (socket) MeasurementLog() ([]byte, error) { return nil, nil }

func main() {
	var run func([]byte) any
	switch os.Args[1] {
	case "judge":
		run = judge
	case "host":
		run = host(os.Args[2])
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		show(run(lines.Bytes()))
	}
	check(lines.Err())
}

func judge(line []byte) any {
	var asked registration
	check(json.Unmarshal(line, &asked))
	block, _ := pem.Decode([]byte(asked.EK))
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	check(err)
	parameters := attest.ActivationParameters{EK: key, AK: asked.AK}
	answer, challenge, err := parameters.Generate()
	if err != nil {
		return outcome{Refused: err.Error()}
	}
	return outcome{EC: challenge, Answer: answer}
}

func host(path string) func([]byte) any {
	connection, err := net.Dial("unix", path)
	check(err)
	tpm, err := attest.OpenTPM(&attest.OpenConfig{CommandChannel: socket{connection}})
	check(err)
	eks, err := tpm.EKs()
	check(err)
	ak, err := tpm.NewAK(nil)
	check(err)
	der, err := x509.MarshalPKIXPublicKey(eks[0].Public)
	check(err)
	sum := sha256.Sum256(der)
	encoded := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	show(registration{EK: string(encoded), AK: ak.AttestationParameters(), Hash: hex.EncodeToString(sum[:])})
	return func(line []byte) any {
		var challenge attest.EncryptedCredential
		check(json.Unmarshal(line, &challenge))
		answer, err := ak.ActivateCredential(tpm, challenge)
		if err != nil {
			return outcome{Refused: err.Error()}
		}
		return outcome{Answer: answer}
	}
}

func show(value any) {
	check(json.NewEncoder(os.Stdout).Encode(value))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
