// Prints the offsets of CPython's structures that whyhang reads, one "name
// value" a line, for the headers it is compiled with:
//   I=.../include/python3.12; cc -DPy_BUILD_CORE -I$I -I$I/internal offsets.c
// The layouts of 3.10 to 3.12 are its output; offsets_test.go compares them.
#include "Python.h"
#include <stddef.h>
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#else
#include "frameobject.h"
#include "internal/pycore_gil.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe_structs.h"
#endif
#include <stdio.h>

#define O(name, type, member) printf("%s %zu\n", name, offsetof(type, member))
#define S(name, type) printf("%s %zu\n", name, sizeof(type))

int main(void)
{
	O("runtimeInterpreters", _PyRuntimeState, interpreters.head);
	O("interpreterNext", PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030b0000
	O("interpreterThreads", PyInterpreterState, threads.head);
#else
	O("interpreterThreads", PyInterpreterState, tstate_head);
#endif
	O("interpreterID", PyInterpreterState, id);
#if PY_VERSION_HEX >= 0x030c0000
	O("interpreterGIL", PyInterpreterState, ceval.gil);
#else
	O("runtimeGIL", _PyRuntimeState, ceval.gil);
#endif
	O("gilHolder", struct _gil_runtime_state, last_holder);
	O("gilLocked", struct _gil_runtime_state, locked);
	O("gilSwitches", struct _gil_runtime_state, switch_number);
	O("gilCond", struct _gil_runtime_state, cond);
	O("threadNext", PyThreadState, next);
	O("threadInterpreter", PyThreadState, interp);
	O("threadID", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
	O("threadNativeID", PyThreadState, native_thread_id);
#endif
#if PY_VERSION_HEX < 0x030d0000
	O("threadSentinel", PyThreadState, on_delete_data);
	O("weakrefObject", PyWeakReference, wr_object);
#endif
#if PY_VERSION_HEX >= 0x030d0000
	O("threadFrame", PyThreadState, current_frame);
#elif PY_VERSION_HEX >= 0x030b0000
	O("threadCFrame", PyThreadState, cframe);
	O("cframeFrame", _PyCFrame, current_frame);
#else
	O("threadFrame", PyThreadState, frame);
#endif
#if PY_VERSION_HEX >= 0x030d0000
	O("frameCode", _PyInterpreterFrame, f_executable);
	O("frameInstr", _PyInterpreterFrame, instr_ptr);
#elif PY_VERSION_HEX >= 0x030b0000
	O("frameCode", _PyInterpreterFrame, f_code);
	O("frameInstr", _PyInterpreterFrame, prev_instr);
#endif
#if PY_VERSION_HEX >= 0x030b0000
	O("framePrevious", _PyInterpreterFrame, previous);
	O("frameOwner", _PyInterpreterFrame, owner);
	O("frameLocals", _PyInterpreterFrame, localsplus);
	O("codeQualName", PyCodeObject, co_qualname);
	O("codeExceptions", PyCodeObject, co_exceptiontable);
	O("codeLocals", PyCodeObject, co_nlocalsplus);
	O("codeBytes", PyCodeObject, co_code_adaptive);
#else
	O("framePrevious", PyFrameObject, f_back);
	O("frameCode", PyFrameObject, f_code);
	O("frameLasti", PyFrameObject, f_lasti);
	O("frameStack", PyFrameObject, f_valuestack);
	O("frameBlocks", PyFrameObject, f_iblock);
	O("frameBlockStack", PyFrameObject, f_blockstack);
	O("frameLocals", PyFrameObject, f_localsplus);
	O("codeBytes", PyCodeObject, co_code);
	S("blockBytes", PyTryBlock);
#endif
	O("codeFile", PyCodeObject, co_filename);
	O("codeName", PyCodeObject, co_name);
	O("codeFirstLine", PyCodeObject, co_firstlineno);
	O("codeLines", PyCodeObject, co_linetable);
	O("codeNames", PyCodeObject, co_names);
	O("tupleItems", PyTupleObject, ob_item);
	O("objectType", PyObject, ob_type);
	O("objectSize", PyVarObject, ob_size);
	O("typeName", PyTypeObject, tp_name);
#if PY_VERSION_HEX < 0x030b0000
	O("typeFlags", PyTypeObject, tp_flags);
	O("typeHeapName", PyHeapTypeObject, ht_name);
#endif
#if PY_VERSION_HEX < 0x030b0000
	O("typeDictOffset", PyTypeObject, tp_dictoffset);
	O("dictValues", PyDictObject, ma_values);
#endif
	O("bytesData", PyBytesObject, ob_sval);
	O("stringLength", PyASCIIObject, length);
	O("stringState", PyASCIIObject, state);
	S("stringASCII", PyASCIIObject);
	S("stringCompact", PyCompactUnicodeObject);
	O("methodSelf", PyMethodObject, im_self);
	if (offsetof(PyMethodObject, im_self) != offsetof(PyCFunctionObject, m_self))
		return 1;
	S("sizeofFrame", 
#if PY_VERSION_HEX >= 0x030b0000
	_PyInterpreterFrame
#else
	PyFrameObject
#endif
	);
	S("sizeofThread", PyThreadState);
	S("sizeofCode", PyCodeObject);
	return 0;
}
