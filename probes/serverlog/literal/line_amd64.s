#include "textflag.h"

#define BYTES(name, x) \
	DATA name+0(SB)/8, $x  \
	DATA name+8(SB)/8, $x  \
	DATA name+16(SB)/8, $x \
	DATA name+24(SB)/8, $x \
	GLOBL name(SB), RODATA|NOPTR, $32

BYTES(·lineEnd<>, 0x0a0a0a0a0a0a0a0a)
BYTES(·zero<>, 0x3030303030303030)
BYTES(·nine<>, 0x0909090909090909)
BYTES(·equals<>, 0x3d3d3d3d3d3d3d3d)
BYTES(·lower<>, 0x0f0f0f0f0f0f0f0f)

// 32 bytes of ones, and 32 of zeros.
DATA ·front<>+0(SB)/8, $-1
DATA ·front<>+8(SB)/8, $-1
DATA ·front<>+16(SB)/8, $-1
DATA ·front<>+24(SB)/8, $-1
DATA ·front<>+32(SB)/8, $0
DATA ·front<>+40(SB)/8, $0
DATA ·front<>+48(SB)/8, $0
DATA ·front<>+56(SB)/8, $0
GLOBL ·front<>(SB), RODATA|NOPTR, $64

// ABSORB hashes the 32 bytes of Y1, 16 in each of two lanes: two rounds of AES
// each, so that no difference in one vector can be undone by one in the next
// that is known beforehand.
#define ABSORB \
	VEXTRACTI128 $1, Y1, X2  \
	VPXOR        X1, X13, X13 \
	VPXOR        X2, X14, X14 \
	VAESENC      X11, X13, X13 \
	VAESENC      X11, X14, X14 \
	VAESENC      X12, X13, X13 \
	VAESENC      X12, X14, X14

// func hashLines(p *byte, n int, secret *[12]uint64, lines *line, most int) int
TEXT ·hashLines(SB), NOSPLIT, $0-48
	MOVQ    p+0(FP), SI
	MOVQ    n+8(FP), CX
	MOVQ    secret+16(FP), BX
	MOVQ    lines+24(FP), R8
	MOVQ    most+32(FP), R9
	LEAQ    -32(SI)(CX*1), CX // the last place to read a vector from
	LEAQ    ·front<>+32(SB), R10
	MOVQ    R9, R11
	VMOVDQU ·lineEnd<>(SB), Y6
	VMOVDQU ·zero<>(SB), Y7
	VMOVDQU ·nine<>(SB), Y8
	VMOVDQU ·equals<>(SB), Y9
	VMOVDQU ·lower<>(SB), Y10
	VMOVDQU 0(BX), X11
	VMOVDQU 16(BX), X12

line:
	TESTQ   R9, R9
	JZ      none
	MOVQ    SI, AX            // where the line begins
	VMOVDQU 32(BX), X13
	VMOVDQU 48(BX), X14

next:
	CMPQ      SI, CX
	JHI       none
	VMOVDQU   (SI), Y1
	VMOVDQU   -1(SI), Y2
	VPCMPEQB  Y6, Y1, Y3
	VPMOVMSKB Y3, DX
	// Y4: digits; Y2: bytes behind which they are kept.
	VPSUBB    Y7, Y1, Y3
	VPMINUB   Y8, Y3, Y4
	VPCMPEQB  Y3, Y4, Y4
	VPMAXUB   Y9, Y2, Y5
	VPCMPEQB  Y2, Y5, Y2
	VPANDN    Y4, Y2, Y4
	// The lower half of a digit is its value.
	VPAND     Y10, Y4, Y4
	VPANDN    Y1, Y4, Y1
	TESTL     DX, DX
	JNZ       last
	ABSORB
	ADDQ      $32, SI
	JMP       next

last:
	// Only the bytes before the newline count.
	BSFL  DX, DX
	MOVQ  R10, DI
	SUBQ  DX, DI
	VPAND (DI), Y1, Y1
	LEAQ  1(SI)(DX*1), SI
	MOVQ  SI, DI
	SUBQ  AX, DI
	ABSORB
	// The length, and both lanes into one.
	VMOVQ   DI, X1
	VPXOR   64(BX), X1, X1
	VPXOR   X1, X13, X13
	VAESENC X11, X13, X13
	VAESENC X14, X13, X13
	VAESENC X12, X13, X13
	VPXOR   80(BX), X14, X14
	VAESENC X12, X14, X14
	VAESENC X13, X14, X14
	VAESENC X11, X14, X14
	VPXOR   X14, X13, X13
	MOVQ    DI, 0(R8)
	VMOVDQU X13, 8(R8)
	ADDQ    $24, R8
	DECQ    R9
	JMP     line

none:
	SUBQ R9, R11
	MOVQ R11, ret+40(FP)
	VZEROUPPER
	RET
