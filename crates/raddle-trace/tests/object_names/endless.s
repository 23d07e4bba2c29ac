# Debug information that no compiler writes: types that contain themselves, and calls inlined into each other without end.
    .text
    .globl main
    .type main, @function
main:
    xor %eax, %eax
    ret
    .size main, . - main
.Lend:
    .data
    .macro object name
    .globl \name
    .type \name, @object
\name: .quad 0
    .size \name, 8
    .endm
    object alias_of_itself
    object class_of_itself
    object array_of_itself
    object union_of_itself

    .section .debug_abbrev,"",@progbits
    .macro entry code, tag, children
    .uleb128 \code, \tag
    .byte \children
    .endm
    .macro attribute name, form
    .uleb128 \name, \form
    .endm
    entry 1, 0x11, 1            # compile_unit: low_pc, high_pc
    attribute 0x11, 0x01
    attribute 0x12, 0x07
    attribute 0, 0
    entry 2, 0x34, 0            # variable: name, type, location
    attribute 0x03, 0x08
    attribute 0x49, 0x13
    attribute 0x02, 0x18
    attribute 0, 0
    entry 3, 0x16, 0            # typedef: name, type
    attribute 0x03, 0x08
    attribute 0x49, 0x13
    attribute 0, 0
    entry 4, 0x13, 1            # structure_type: name, byte_size
    attribute 0x03, 0x08
    attribute 0x0b, 0x0b
    attribute 0, 0
    entry 5, 0x0d, 0            # member: name, type
    attribute 0x03, 0x08
    attribute 0x49, 0x13
    attribute 0, 0
    entry 6, 0x01, 1            # array_type: type
    attribute 0x49, 0x13
    attribute 0, 0
    entry 7, 0x21, 0            # subrange_type: count
    attribute 0x37, 0x0b
    attribute 0, 0
    entry 8, 0x17, 1            # union_type: name, byte_size
    attribute 0x03, 0x08
    attribute 0x0b, 0x0b
    attribute 0, 0
    entry 9, 0x2e, 1            # subprogram: name, low_pc, high_pc
    attribute 0x03, 0x08
    attribute 0x11, 0x01
    attribute 0x12, 0x07
    attribute 0, 0
    entry 10, 0x1d, 1           # inlined_subroutine
    attribute 0, 0
    .byte 0

    .section .debug_info,"",@progbits
.Lunit:
    .long .Lunit_end - .Lunit_start
.Lunit_start:
    .value 4
    .long .debug_abbrev
    .byte 8
    .uleb128 1
    .quad main
    .quad .Lend - main
    .macro variable name, type
    .uleb128 2
    .string "\name"
    .long \type - .Lunit
    .uleb128 9
    .byte 0x03
    .quad \name
    .endm
    variable alias_of_itself, .Lalias
    variable class_of_itself, .Lclass
    variable array_of_itself, .Larray
    variable union_of_itself, .Lunion
.Lalias:
    .uleb128 3
    .string "alias"
    .long .Lalias - .Lunit
.Lclass:
    .uleb128 4
    .string "class"
    .byte 8
    .uleb128 5
    .string "self"
    .long .Lclass - .Lunit
    .byte 0
.Larray:
    .uleb128 6
    .long .Larray - .Lunit
    .uleb128 7
    .byte 1
    .byte 0
.Lunion:
    .uleb128 8
    .string "union"
    .byte 8
    .rept 8
    .uleb128 5
    .string "either"
    .long .Lunion - .Lunit
    .endr
    .byte 0
    .uleb128 9
    .string "main"
    .quad main
    .quad .Lend - main
    .rept 100000
    .uleb128 10
    .endr
    .rept 100000
    .byte 0
    .endr
    .byte 0
    .byte 0
.Lunit_end:
    .section .note.GNU-stack,"",@progbits
